// Package connect sets clients up to use the proxy, and takes that back.
//
// Each client is one row of the table that Clients returns: where its files are, what must stand
// in them, and how to start it for one run. A file is changed in place: comments, order and
// formatting of everything else stay. Before the first change a record with the file's old content
// is kept, so that Disconnect brings back every byte, or takes out only what was put in if the
// file has changed since.
package connect
