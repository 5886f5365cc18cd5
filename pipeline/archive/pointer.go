package archive

import (
	"bytes"
	"crypto/sha256"
	"encoding/base32"
	"encoding/binary"
	"errors"
	"regexp"
	"strconv"
	"strings"

	"github.com/google/uuid"

	"palimpsest/pipeline/conversation"
)

// ErrPointer says that a text is no pointer into the archive.
var ErrPointer = errors.New("not a pointer such as k7f2m7qa#12")

// namedBytes is how many bytes of a link make its name. In a workspace of a million links, one name in a
// million also matches another link.
const namedBytes = 5

// Name is the archive name of a history in prompts and answers. It identifies the history that ends at a
// link, so that everyone who shares a message before the link uses the same pointer to it.
type Name string

// NameOf returns the name of the history that ends at a link: eight letters and digits, derived from the link
// only.
func NameOf(link conversation.Hash) Name {
	return Name(strings.ToLower(base32.StdEncoding.EncodeToString(link[:namedBytes])))
}

// Links returns the first and the last link with the name. The name must come from NameOf or ParsePointer.
func (n Name) Links() (first, last []byte) {
	prefix, err := base32.StdEncoding.DecodeString(strings.ToUpper(string(n)))
	if err != nil {
		return nil, nil // matches no link
	}
	filler := bytes.Repeat([]byte{0xff}, len(conversation.Hash{})-len(prefix))
	return prefix, append(bytes.Clone(prefix), filler...)
}

// Pointer points to messages of the archive.
type Pointer struct {
	Name     Name      // "" means Lane, or the current history
	Lane     uuid.UUID // uuid.Nil means Name
	From, To int       // messages, To excluded
}

// ParsePointer reads a pointer from prompts and answers, in any of the forms in which a model repeats it:
// "k7f2m7qa#12", "k7f2m9qa#12–#14", "#12". It returns ErrPointer for everything else.
func ParsePointer(text string) (Pointer, error) {
	parts := pointerForm().FindStringSubmatch(strings.TrimSpace(text))
	if parts == nil {
		return Pointer{}, ErrPointer
	}
	var pointer Pointer
	if name := strings.ToLower(parts[1]); len(name) == len(uuid.Nil.String()) {
		pointer.Lane = uuid.MustParse(name)
	} else {
		pointer.Name = Name(name)
	}
	pointer.From, _ = strconv.Atoi(parts[2]) // nine digits at most
	pointer.To = pointer.From + 1
	if parts[3] != "" {
		last, _ := strconv.Atoi(parts[3])
		if last < pointer.From {
			return Pointer{}, ErrPointer
		}
		pointer.To = last + 1
	}
	return pointer, nil
}

func pointerForm() *regexp.Regexp {
	return regexp.MustCompile(`(?i)^\[?(?:archive\s+)?([a-z2-7]{8}|[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})?\s*#(\d{1,9})(?:\s*(?:-|–|—|to)\s*#?(\d{1,9}))?\]?$`)
}

// String returns the pointer in the form that ParsePointer reads.
func (p Pointer) String() string {
	text := string(p.Name)
	if p.Lane != uuid.Nil {
		text = p.Lane.String()
	}
	text += "#" + strconv.Itoa(p.From)
	if p.To > p.From+1 {
		text += "–#" + strconv.Itoa(p.To-1)
	}
	return text
}

// Head is the end of a lane's chain: the link after its first messages.
//
// The chain of a lane begins with the SHA-256 of "palimpsest chain 1". The link
// after the message at index i is
//
//	SHA-256(link before it ‖ i as 8 bytes, big endian ‖ SHA-256 of the message)
//
// where the message is its bytes as they are stored: as the client sent them, or with personal data replaced
// if its workspace redacts. A link therefore identifies all messages up to its own, with their order and
// places.
type Head struct {
	Messages int // linked messages, from index 0
	Link     conversation.Hash
}

// NewHead returns the head of a lane without messages.
func NewHead() Head { return Head{Link: sha256.Sum256([]byte("palimpsest chain 1"))} }

// Extend returns the head after one more message, which has the index Messages.
func (h Head) Extend(hash conversation.Hash) Head {
	return Head{Messages: h.Messages + 1, Link: Link(h.Link, h.Messages, hash)}
}

// Link returns the link after a message with a hash at an index.
func Link(before conversation.Hash, index int, hash conversation.Hash) conversation.Hash {
	var linked [len(before) + 8 + len(hash)]byte
	copy(linked[:], before[:])
	binary.BigEndian.PutUint64(linked[len(before):], uint64(index)) //nolint:gosec // a place in one body
	copy(linked[len(before)+8:], hash[:])
	return sha256.Sum256(linked[:])
}
