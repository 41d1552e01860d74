"""One client per wire protocol, behind the one protocol the agent loop knows."""
