// Package upstream sends requests to providers with the workspace's key. What a
// client sent goes along unchanged but for what must not leave: keys, our own
// headers, and what concerns one connection only.
package upstream
