// Package connections keeps strangers and tenants from using up all of the program's connections: request
// bodies must keep coming, and there are limits for the unauthenticated connections of one place and for all
// connections of an API key and an account. If file descriptors run low, it closes idle connections.
package connections
