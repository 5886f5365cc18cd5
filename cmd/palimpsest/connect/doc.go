// Package connect sets clients up to use the proxy, and reverts that.
//
// Each client is one row of the table that Clients returns: its files, their required entries, and how to
// start it for one run. A file is changed in place: comments, order and formatting of everything else stay.
// Before the first change a record with the file's old content is kept. With it Disconnect brings back
// every byte. If the file has changed since, it removes only the entries.
package connect
