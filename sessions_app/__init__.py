"""The product: projects, agents, sessions, approvals, and the agent that runs in them."""
