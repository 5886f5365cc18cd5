package export

import (
	"bufio"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/google/uuid"

	"palimpsest/pipeline/conversation"
)

// Main is a session's main thread in a file.
type Main struct {
	ID       uuid.UUID
	Name     string // the client's own id; "" if absent
	Title    string
	Client   string
	Model    string
	Format   conversation.Format
	Lane     uuid.UUID
	Messages []json.RawMessage

	// Answer is the newest answer in the thread, or nil. It is also among Messages if its client has sent it
	// back since.
	Answer json.RawMessage
}

// ReadMain reads the main thread of the first session in a file. An error describes the missing or damaged
// part.
func ReadMain(file io.Reader) (Main, error) {
	reader := mainReader{bytes: map[string]json.RawMessage{}}
	lines := bufio.NewReaderSize(file, 64<<10)
	for number := 1; ; number++ {
		line, _, err := readLine(lines)
		if errors.Is(err, io.EOF) {
			return Main{}, errors.New("the export is cut off: try again")
		}
		if err != nil {
			return Main{}, fmt.Errorf("read export: %w", err)
		}
		done, err := reader.line(line)
		if err != nil {
			return Main{}, fmt.Errorf("line %d of the export: %w", number, err)
		}
		if done {
			return reader.read, nil
		}
	}
}

// mainReader reads a main thread line by line.
type mainReader struct {
	read  Main
	bytes map[string]json.RawMessage // by hash, because repeated messages have no bytes
}

// line reads a line. done says that it ends the session.
func (r *mainReader) line(line []byte) (done bool, err error) {
	var kind kindLine
	if err := json.Unmarshal(line, &kind); err != nil {
		return false, err
	}
	switch kind.Type {
	case typeManifest:
		return false, r.manifest(line)
	case typeMessage:
		var message messageLine
		if err := json.Unmarshal(line, &message); err != nil {
			return false, err
		}
		raw, err := r.content(message.content)
		if message.Lane != r.read.Lane {
			return false, nil
		}
		if err == nil && message.Index != len(r.read.Messages) {
			err = errors.New("is missing")
		}
		if err != nil {
			return false, fmt.Errorf("message %d of the thread %w", len(r.read.Messages), err)
		}
		r.read.Messages = append(r.read.Messages, raw)
	case typeAnswer:
		var answer answerLine
		if err := json.Unmarshal(line, &answer); err != nil {
			return false, err
		}
		if raw, err := r.content(answer.content); err == nil && answer.Lane == r.read.Lane {
			r.read.Answer = raw
		}
	case typeDamage:
		var damage damageLine
		if err := json.Unmarshal(line, &damage); err != nil {
			return false, err
		}
		if damage.Lane == r.read.Lane {
			return false, fmt.Errorf("the thread is damaged: %s", damage.Damage)
		}
	case typeEnd:
		return true, nil
	}
	return false, nil
}

func (r *mainReader) manifest(line []byte) error {
	var manifest manifestLine
	if err := json.Unmarshal(line, &manifest); err != nil {
		return err
	}
	if manifest.Version != Version {
		return fmt.Errorf("has version %d, and this program reads version %d: use the server's version of it", manifest.Version, Version)
	}
	if len(manifest.Lanes) == 0 {
		return errors.New("the session has no thread")
	}
	head := manifest.Session
	r.read = Main{
		ID: head.ID, Name: head.Name, Title: head.Title, Client: head.Client, Model: head.Model, Format: conversation.Format(head.Format),
		Lane: manifest.Lanes[0].ID, // the main one is first
	}
	return nil
}

// content returns the bytes of a line, or of the earlier line that it repeats.
func (r *mainReader) content(line content) (json.RawMessage, error) {
	var raw []byte
	switch {
	case line.Damage != "":
		return nil, fmt.Errorf("is damaged: %s", line.Damage)
	case line.Text != nil:
		raw = []byte(*line.Text)
	case line.Base64 != nil:
		var err error
		if raw, err = base64.StdEncoding.DecodeString(*line.Base64); err != nil {
			return nil, fmt.Errorf("cannot be read: %w", err)
		}
	default:
		known, is := r.bytes[line.SHA256]
		if !is {
			return nil, errors.New("has no bytes")
		}
		return known, nil
	}
	if sum := sha256.Sum256(raw); hex.EncodeToString(sum[:]) != line.SHA256 {
		return nil, errors.New("has other bytes than its hash says")
	}
	r.bytes[line.SHA256] = raw
	return raw, nil
}
