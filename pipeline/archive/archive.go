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

// ErrNotFound says that the archive has no such message or object.
var ErrNotFound = errors.New("not in the archive")

// ErrDamaged says that stored bytes no longer have the hash they are stored under.
var ErrDamaged = errors.New("archived bytes do not match their hash")

// ErrAway says that the bucket with the bytes does not answer. Another attempt may succeed.
var ErrAway = errors.New("the bucket does not answer")

// ErrTaken says that a name in the bucket is in use.
var ErrTaken = errors.New("name in the bucket is taken")

// Entry is one message at its place in a lane.
type Entry struct {
	Index  int // place in the client's list
	Hash   conversation.Hash
	Role   conversation.Role
	Flags  conversation.Flags // only set for storing, not on reading
	Tokens int
	Raw    []byte // the message as it was sent, or redacted; nil if only the entry was requested
	Size   int    // bytes of Raw

	StoredAt time.Time
}

// Originals reads the messages of a lane.
type Originals interface {
	// Originals returns the archived messages from index from to to (excluded) with their bytes, verified by
	// their hashes. It returns ErrDamaged if one does not match.
	Originals(ctx context.Context, workspace tenants.WorkspaceID, lane uuid.UUID, from, to int) ([]Entry, error)
}

// Reader reads the archive of one workspace.
type Reader interface {
	Originals

	// Entries returns up to limit entries of a lane from index from on, in order,
	// without their bytes.
	Entries(ctx context.Context, workspace tenants.WorkspaceID, lane uuid.UUID, from, limit int) ([]Entry, error)

	// Objects returns messages by their hashes, in the same order, each verified by its hash or with its
	// damage.
	Objects(ctx context.Context, workspace tenants.WorkspaceID, hashes []conversation.Hash) ([]Object, error)

	// Head returns the verified head of a lane's chain, or ErrDamaged.
	Head(ctx context.Context, workspace tenants.WorkspaceID, lane uuid.UUID) (Head, error)

	// Answers returns up to limit answers of a session that follow after, oldest first and without their
	// bytes. The zero Answer starts at the first.
	Answers(ctx context.Context, workspace tenants.WorkspaceID, session uuid.UUID, after Answer, limit int) ([]Answer, error)

	// Original returns one message of a lane with its bytes, verified by their hash. It returns ErrNotFound
	// or ErrDamaged.
	Original(ctx context.Context, workspace tenants.WorkspaceID, lane uuid.UUID, index int) (Entry, error)

	// Sizes returns the o200k tokens of the first messages of a lane, by index; -1 for missing ones.
	Sizes(ctx context.Context, workspace tenants.WorkspaceID, lane uuid.UUID, messages int) ([]int, error)

	// NewestAnswer returns, without its bytes, the newest answer to a request of a lane with the given number
	// of messages, or ErrNotFound.
	NewestAnswer(ctx context.Context, workspace tenants.WorkspaceID, session, lane uuid.UUID, messages int) (Answer, error)
}

// Bucket keeps bytes outside the database: in a directory or an S3-compatible store. It is safe for
// concurrent use.
type Bucket interface {
	// Put stores bytes under a name. They are durable when it returns. It never overwrites: it returns
	// ErrTaken if the name is in use.
	Put(ctx context.Context, name string, content []byte) error

	// Get returns the bytes under a name, or ErrNotFound.
	Get(ctx context.Context, name string) ([]byte, error)

	// Range returns length bytes of an object from an offset. It returns ErrNotFound if the object is absent,
	// or ErrDamaged if it is too short.
	Range(ctx context.Context, name string, offset, length int) ([]byte, error)

	// Delete removes an object. A missing object is no error.
	Delete(ctx context.Context, name string) error

	// Names calls each with every object's name. It may miss concurrent changes. It ends at the first error
	// of each and returns it.
	Names(ctx context.Context, each func(name string) error) error
}

// Answer is a provider's answer to one exchange.
type Answer struct {
	Exchange uuid.UUID
	Lane     uuid.UUID // uuid.Nil if absent
	At       time.Time // of the exchange
	Hash     conversation.Hash
	Size     int // bytes
}

// SealError seals a provider's error text for an exchange, because it may repeat content of the request.
func (k *Key) SealError(exchange uuid.UUID, text []byte) []byte {
	return k.Seal(aboutError(exchange), text)
}

// OpenError returns the text that SealError sealed for the exchange, or ErrSealed.
func (k *Key) OpenError(exchange uuid.UUID, sealed []byte) ([]byte, error) {
	return k.Open(aboutError(exchange), sealed)
}

func aboutError(exchange uuid.UUID) []byte {
	return append([]byte("error of exchange "), exchange[:]...)
}
