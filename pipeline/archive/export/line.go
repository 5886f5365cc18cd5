// Package export writes sessions into self-verifying files, and verifies such files.
//
// A file holds one JSON object a line (NDJSON), each with a type:
//
//   - manifest opens a section, one for each session: format version, workspace, session, lanes, and how
//     hashes and links are made.
//   - message is one archived message at its place in a lane: index, SHA-256, size, and the link of the
//     lane's chain after it, see archive.Head. The bytes are in text, or in base64 if they are not UTF-8. A
//     message has neither if the section already holds its bytes.
//   - answer is a provider's answer to an exchange. The answers of a session have their own chain, in order
//     of time.
//   - projection is the replacement of a lane's first messages in the prompt. Only the file's own hash
//     protects it.
//   - pin is a message of a lane whose turn stays as the client sent it, and order a compaction of a lane
//     that waits for its next request. Only the file's own hash protects them, too.
//   - damage reports damage of the archive itself.
//   - end closes the section: the counts of its lines, the link after each lane's last message, and the
//     SHA-256 of its manifest's line.
//   - file is the last line: lines, sections, and the SHA-256 of every byte before it.
//
// No line says when or where the file was written, so that the same sessions give the same bytes. An export
// from before a restore can therefore be compared with one from after it.
//
// Verification shows that a file is unchanged since it was written. It is not signed, so anyone who can
// rewrite the whole file can make another. To rule that out, note the SHA-256 of the last line elsewhere.
package export

import (
	"time"

	"github.com/google/uuid"

	"palimpsest/tenants"
)

// Version is the version of the file format.
const Version = 2

// MaxLine bounds one line, in bytes: the largest message in its longest form.
const MaxLine = 400 << 20

// The types of lines.
const (
	typeManifest   = "manifest"
	typeMessage    = "message"
	typeAnswer     = "answer"
	typeProjection = "projection"
	typePin        = "pin"
	typeOrder      = "order"
	typeDamage     = "damage"
	typeEnd        = "end"
	typeFile       = "file"
)

type manifestLine struct {
	Type      string              `json:"type"`
	Version   int                 `json:"palimpsest_export"`
	Section   int                 `json:"section"`
	Workspace tenants.WorkspaceID `json:"workspace"`
	Session   sessionHead         `json:"session"`
	Algorithm algorithmHead       `json:"algorithm"`
	Lanes     []laneHead          `json:"lanes"`
}

type sessionHead struct {
	ID        uuid.UUID `json:"id"`
	Name      string    `json:"name"`
	Title     string    `json:"title"`
	Client    string    `json:"client"`
	Model     string    `json:"model"`
	Format    string    `json:"format"`
	StartedAt time.Time `json:"started_at"`
	LastAt    time.Time `json:"last_at"`

	EndUser     string `json:"end_user,omitempty"`
	EndUserName string `json:"end_user_name,omitempty"`
}

// algorithmHead says how to check the file without Palimpsest.
type algorithmHead struct {
	Hash  string `json:"hash"`
	Link  string `json:"link"`
	First string `json:"first"`
}

type laneHead struct {
	ID       uuid.UUID  `json:"id"`
	Kind     string     `json:"kind"`
	Parent   *uuid.UUID `json:"parent,omitempty"`
	ForkAt   int        `json:"fork_at,omitempty"`
	Messages int        `json:"messages"`
}

// content describes the bytes of a message or an answer.
type content struct {
	SHA256 string  `json:"sha256"`
	Size   int     `json:"size"`
	Link   string  `json:"link"`
	Text   *string `json:"text,omitempty"`
	Base64 *string `json:"base64,omitempty"`
	Damage string  `json:"damage,omitempty"` // why the archive could not return the bytes
}

type messageLine struct {
	Type     string    `json:"type"`
	Lane     uuid.UUID `json:"lane"`
	Index    int       `json:"index"`
	Role     string    `json:"role"`
	Tokens   int       `json:"tokens"`
	StoredAt time.Time `json:"stored_at"`
	content
}

type answerLine struct {
	Type    string    `json:"type"`
	Index   int       `json:"index"`
	Request uuid.UUID `json:"request"`
	Lane    uuid.UUID `json:"lane"`
	At      time.Time `json:"at"`
	content
}

type projectionLine struct {
	Type   string     `json:"type"`
	Lane   uuid.UUID  `json:"lane"`
	Number int        `json:"number"`
	Covers int        `json:"covers"`
	Reason string     `json:"reason"`
	Before int        `json:"tokens_before"`
	After  int        `json:"tokens_after"`
	At     time.Time  `json:"at"`
	Parts  []partLine `json:"parts"`
}

type partLine struct {
	From   int     `json:"from"`
	To     int     `json:"to"`
	Level  int     `json:"level"`
	Text   *string `json:"text,omitempty"` // without both, the client's own bytes
	Base64 *string `json:"base64,omitempty"`
}

type pinLine struct {
	Type    string    `json:"type"`
	Lane    uuid.UUID `json:"lane"`
	Message int       `json:"message"`
	By      uuid.UUID `json:"pinned_by"`
	At      time.Time `json:"pinned_at"`
}

type orderLine struct {
	Type         string    `json:"type"`
	Lane         uuid.UUID `json:"lane"`
	By           uuid.UUID `json:"asked_by"`
	At           time.Time `json:"asked_at"`
	Instructions string    `json:"instructions"`
}

type damageLine struct {
	Type   string    `json:"type"`
	Lane   uuid.UUID `json:"lane"`
	Damage string    `json:"damage"`
}

type endLine struct {
	Type     string     `json:"type"`
	Section  int        `json:"section"`
	Messages int        `json:"messages"`
	Bytes    int64      `json:"bytes"` // of all messages and answers, counting repeated ones each time
	Damaged  int        `json:"damaged"`
	Answers  chainEnd   `json:"answers"`
	Lanes    []chainEnd `json:"lanes"`
	Manifest string     `json:"manifest_sha256"`
}

type chainEnd struct {
	Lane     uuid.UUID `json:"lane"`
	Messages int       `json:"messages"`
	Link     string    `json:"link"`
}

type fileLine struct {
	Type     string `json:"type"`
	Sections int    `json:"sections"`
	Lines    int    `json:"lines"` // before this one
	SHA256   string `json:"sha256"`
}

// kindLine is the common part of all lines.
type kindLine struct {
	Type string `json:"type"`
}
