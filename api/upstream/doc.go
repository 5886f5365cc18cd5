// Package upstream sends requests to providers with the workspace's key. It forwards a client's request
// unchanged except for keys, our own headers, and headers that concern one connection only.
package upstream
