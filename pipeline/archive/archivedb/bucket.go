package archivedb

import "errors"

// place says where an object's bytes are; the values are in the database.
type place int16

const (
	here     place = 0 // in the database
	inBucket place = 1 // in a segment
	doomed   place = 2 // in a segment; nobody refers to them any more
)

// fetchesAtOnce is how many requests are made to a bucket at once on behalf of one caller.
const fetchesAtOnce = 16

// errNoBucket says that bytes lie in a bucket that this process was not told of.
var errNoBucket = errors.New("the bytes are in a bucket, and none is configured: set PALIMPSEST_BLOB_URL to it")
