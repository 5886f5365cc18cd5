// Package archive keeps every original message of every session, byte for byte as it was given,
// each once however often it is sent again.
package archive

import (
	"context"
	"errors"
	"time"

	"github.com/google/uuid"

	"palimpsest/pipeline/conversation"
	"palimpsest/tenants"
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
	Raw    []byte // the message as it was sent, or redacted; nil where only the entry is asked for
	Size   int    // bytes of Raw

	StoredAt time.Time
}

// Originals reads the messages of a lane.
type Originals interface {
	// Originals returns the messages from index from to to (excluded) with their bytes,
	// proven by their hashes, so far as they are archived. It returns ErrDamaged.
	Originals(ctx context.Context, workspace tenants.WorkspaceID, lane uuid.UUID, from, to int) ([]Entry, error)
}

// Reader reads what was said in one workspace.
type Reader interface {
	Originals

	// Entries returns up to limit entries of a lane from index from on, in order,
	// without their bytes.
	Entries(ctx context.Context, workspace tenants.WorkspaceID, lane uuid.UUID, from, limit int) ([]Entry, error)

	// Objects returns messages by their hashes, in the same order, each proven by
	// its hash or with what is wrong with it.
	Objects(ctx context.Context, workspace tenants.WorkspaceID, hashes []conversation.Hash) ([]Object, error)

	// Head returns where the chain of a lane has come to, proven, or ErrDamaged.
	Head(ctx context.Context, workspace tenants.WorkspaceID, lane uuid.UUID) (Head, error)

	// Answers returns up to limit answers of a session without their bytes, the
	// oldest first, that follow one: the zero Answer is followed by the first.
	Answers(ctx context.Context, workspace tenants.WorkspaceID, session uuid.UUID, after Answer, limit int) ([]Answer, error)

	// Original returns one message of a lane with its bytes, proven by their
	// hash. It returns ErrNotFound or ErrDamaged.
	Original(ctx context.Context, workspace tenants.WorkspaceID, lane uuid.UUID, index int) (Entry, error)

	// Sizes returns the o200k tokens of the first messages of a lane, by index; -1 for those that are not there.
	Sizes(ctx context.Context, workspace tenants.WorkspaceID, lane uuid.UUID, messages int) ([]int, error)

	// NewestAnswer returns, without its bytes, the newest answer to a request with so many
	// messages of a lane, or ErrNotFound.
	NewestAnswer(ctx context.Context, workspace tenants.WorkspaceID, session, lane uuid.UUID, messages int) (Answer, error)
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

	// Names calls each with every object's name. What is stored or deleted meanwhile may be
	// named or not. It ends at the first error of each and returns that.
	Names(ctx context.Context, each func(name string) error) error
}

// Answer is what a provider answered to one exchange, as its tap read it.
type Answer struct {
	Exchange uuid.UUID
	Lane     uuid.UUID // uuid.Nil if none
	At       time.Time // of the exchange
	Hash     conversation.Hash
	Size     int // bytes
}
