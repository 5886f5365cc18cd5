// Package search finds documents of an archive by their words. It splits the messages of a lane into
// documents, a call together with its results, splits their text into terms of code and of speech, parses a
// question into terms, and ranks. It has no state: a Memory ranks the documents that it receives, and
// archivedb keeps the same terms, hashed, in the database.
package search
