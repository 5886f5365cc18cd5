// Package recall lets a model look things up in the archive: an MCP server with two
// tools, recall_search and recall_get, over streamable HTTP
// (modelcontextprotocol.io/specification, Transports). It keeps nothing between two
// requests, so any replica answers any of them. Who asks is known before: package api
// finds the API key.
package recall
