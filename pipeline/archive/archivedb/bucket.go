package archivedb

import "errors"

// place is the location of an object's bytes. The values are stored in the database.
type place int16

const (
	here     place = 0 // in the database
	inBucket place = 1 // in a segment
	doomed   place = 2 // in a segment, but without references
)

// fetchesAtOnce is how many requests to a bucket run in parallel for one caller.
const fetchesAtOnce = 16

// errNoBucket says that bytes are in a bucket, but this process has no bucket.
var errNoBucket = errors.New("the bytes are in a bucket, and none is configured: set PALIMPSEST_BLOB_URL to it")
