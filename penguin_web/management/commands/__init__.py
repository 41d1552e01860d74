"""Commands of the site: the server and the first admin."""
