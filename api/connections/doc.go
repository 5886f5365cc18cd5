// Package connections keeps strangers and tenants from holding all of the program's connections:
// request bodies must keep coming, one place has so many connections at most on which nobody
// has proven who they are, and an API key and an account have so many in all. Where file
// descriptors run low, idle connections are closed.
package connections
