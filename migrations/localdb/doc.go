// Package localdb runs a private PostgreSQL cluster below a directory, from the
// PostgreSQL programs that are installed on the machine. The cluster ends with the
// program and comes back, with everything that was committed, after a kill.
package localdb
