// Package connections keeps strangers from holding the program's connections: request
// bodies must keep coming, and one place has so many connections at most on which nobody
// has proven who they are.
package connections
