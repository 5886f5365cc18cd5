// Package signature checks files against signatures in minisign's format
// (https://jedisct1.github.io/minisign/#signature-format).
package signature

import (
	"crypto/ed25519"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"strings"

	"golang.org/x/crypto/blake2b"
)

const (
	algorithm = 2 // bytes of the algorithm's name
	keyID     = 8 // bytes of the number of a key
	head      = algorithm + keyID
)

// The errors of a wrong file.
var (
	ErrKey       = errors.New("not a public key of minisign")
	ErrSignature = errors.New("not a signature of minisign")
	ErrOtherKey  = errors.New("it was signed with another key")
	ErrChanged   = errors.New("the signature is not that of this file: don't use the file")
)

// Key is a public key.
type Key struct {
	id     string
	public ed25519.PublicKey
}

// ParseKey parses a public key: minisign's output line, or its file.
func ParseKey(text string) (Key, error) {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	raw, err := base64.StdEncoding.DecodeString(strings.TrimSpace(lines[len(lines)-1]))
	if err != nil || len(raw) != head+ed25519.PublicKeySize || string(raw[:algorithm]) != "Ed" {
		return Key{}, ErrKey
	}
	return Key{id: string(raw[algorithm:head]), public: raw[head:]}, nil
}

// Verify checks a file against its signature and returns the trusted comment, which the signature covers
// too.
func (k Key) Verify(file io.Reader, signature string) (comment string, err error) {
	lines := strings.Split(strings.ReplaceAll(strings.TrimSpace(signature), "\r\n", "\n"), "\n")
	if len(lines) != 4 {
		return "", ErrSignature
	}
	comment, named := strings.CutPrefix(lines[2], "trusted comment: ")
	raw, err := base64.StdEncoding.DecodeString(lines[1])
	global, err2 := base64.StdEncoding.DecodeString(lines[3])
	if !named || err != nil || err2 != nil || len(raw) != head+ed25519.SignatureSize || len(global) != ed25519.SignatureSize {
		return "", ErrSignature
	}
	if string(raw[:algorithm]) != "ED" {
		return "", fmt.Errorf("%w: only signatures of hashed files (ED) are supported", ErrSignature)
	}
	if string(raw[algorithm:head]) != k.id {
		return "", fmt.Errorf("%w, with number %X", ErrOtherKey, reversed(raw[algorithm:head]))
	}
	hash, err := blake2b.New512(nil)
	if err != nil {
		return "", err
	}
	if _, err := io.Copy(hash, file); err != nil {
		return "", fmt.Errorf("read the file: %w", err)
	}
	if !ed25519.Verify(k.public, hash.Sum(nil), raw[head:]) || !ed25519.Verify(k.public, append(raw[head:], comment...), global) {
		return "", ErrChanged
	}
	return comment, nil
}

// reversed returns the number of a key in minisign's format.
func reversed(id []byte) []byte {
	shown := make([]byte, len(id))
	for i, b := range id {
		shown[len(id)-1-i] = b
	}
	return shown
}
