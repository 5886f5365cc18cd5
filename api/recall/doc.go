// Package recall lets a model look things up in the archive: an MCP server with two tools, recall_search and
// recall_get, over streamable HTTP (modelcontextprotocol.io/specification, Transports). Any replica can
// answer any request, because the server is stateless. Package api authenticates the API key first.
package recall
