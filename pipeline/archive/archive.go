// Package archive keeps every original message of every session, byte for byte,
// each once however often it is sent again.
package archive

import (
	"context"
	"errors"
	"time"

	"github.com/google/uuid"

	"palimpsest/pipeline/conversation"
)

// ErrNotFound says that the archive holds nothing under that name.
var ErrNotFound = errors.New("not in the archive")

// ErrDamaged says that stored bytes no longer have the hash they are stored under.
var ErrDamaged = errors.New("archived bytes do not match their hash")

// ErrAway says that the bucket that holds the bytes does not answer: another try may succeed.
var ErrAway = errors.New("the bucket does not answer")

// ErrTaken says that a bucket holds something under that name already.
var ErrTaken = errors.New("name in the bucket is taken")

// Entry is one message at its place in a lane.
type Entry struct {
	Index  int // place in the client's list
	Hash   conversation.Hash
	Role   conversation.Role
	Flags  conversation.Flags // of what is to be stored; what is read has none
	Tokens int
	Raw    []byte // the message as it was sent; nil where only the entry is asked for
	Size   int    // bytes of Raw

	StoredAt time.Time
}

// Reader reads originals of one workspace.
type Reader interface {
	// Entries returns up to limit entries of a lane from index from on, in order,
	// without their bytes.
	Entries(ctx context.Context, workspace, lane uuid.UUID, from, limit int) ([]Entry, error)

	// Original returns one message of a lane with its bytes, proven by their
	// hash. It returns ErrNotFound or ErrDamaged.
	Original(ctx context.Context, workspace, lane uuid.UUID, index int) (Entry, error)
}

// Bucket keeps bytes outside the database: in a directory or an S3-compatible
// store. Its methods may be called by several goroutines at once.
type Bucket interface {
	// Put stores bytes under a name; they are durable when it returns. It never
	// overwrites: it returns ErrTaken if something is stored under the name.
	Put(ctx context.Context, name string, content []byte) error

	// Get returns the bytes under a name, or ErrNotFound.
	Get(ctx context.Context, name string) ([]byte, error)

	// Range returns so many bytes from an offset of what is under a name, or ErrNotFound. It
	// returns ErrDamaged where there are not as many.
	Range(ctx context.Context, name string, offset, length int) ([]byte, error)

	// Delete removes what is under a name; it is no error if there is nothing.
	Delete(ctx context.Context, name string) error
}

// Answer is what a provider answered to one exchange, as its tap read it.
type Answer struct {
	Exchange uuid.UUID
	Lane     uuid.UUID // uuid.Nil if none
	At       time.Time // of the exchange
	Hash     conversation.Hash
	Size     int // bytes
}
