// Package search finds documents of an archive by their words. It cuts the messages
// of a lane into documents, a call together with its results, cuts their text into
// the terms of code and of speech, reads out of a question what is looked for, and
// ranks. It holds no state: a Memory ranks what it is given, and archivedb keeps the
// same terms, hashed, in the database.
package search
