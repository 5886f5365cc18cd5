package snapshot

import (
	"bytes"
	"cmp"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"
)

// The files of a backup. No other is read, whatever a manifest names.
const (
	manifestFile = "manifest.json"
	macFile      = "manifest.mac"
	databaseFile = "database.dump"
	objectsDir   = "objects"
	objectsFile  = "objects.sha256"
	secretFile   = "secret.key"
)

// Version is the version of backups to write and read. Backups of the version before it have no
// authenticated manifest.
const (
	Version         = 2
	unauthenticated = 1
)

// The modes of a backup's files, for this program's user only.
const (
	directoryMode = 0o700
	fileMode      = 0o600
)

// Where the objects of a bucket are.
const (
	ObjectsNone      = "none"      // no bucket: the database holds everything
	ObjectsHere      = "here"      // in the backup
	ObjectsElsewhere = "elsewhere" // in the bucket, left out of the backup
)

// Manifest describes the contents of a backup.
type Manifest struct {
	Version   int       `json:"palimpsest_backup"`
	MadeAt    time.Time `json:"made_at"`   // the time of the database's snapshot, by the database's clock
	Migration int64     `json:"migration"` // of the schema
	Server    string    `json:"server"`    // version of PostgreSQL
	Counts    Counts    `json:"counts"`
	Database  File      `json:"database"`
	Objects   Objects   `json:"objects"`
	SecretKey *File     `json:"secret_key,omitempty"`       // nil if absent from the backup
	Proof     []byte    `json:"master_key_proof,omitempty"` // the master key opens it; only in backups without an authenticated manifest
}

// Counts holds a database's numbers of rows, for people and for comparison.
type Counts struct {
	Workspaces int64 `json:"workspaces"`
	Sessions   int64 `json:"sessions"`
	Exchanges  int64 `json:"exchanges"`
}

// Objects tells where the bucket's objects are.
type Objects struct {
	Where string `json:"where"`
	Count int64  `json:"count"`
	Bytes int64  `json:"bytes"`
	List  *File  `json:"list,omitempty"` // with a line for each object in the backup
}

// File is a file of a backup.
type File struct {
	Name   string `json:"name"`
	Bytes  int64  `json:"bytes"`
	SHA256 string `json:"sha256"`
}

// The reasons to reject a backup.
var (
	ErrUnfinished      = errors.New("is no whole backup: it has no " + manifestFile)
	ErrUnauthenticated = errors.New("the backup was made by an older version, which did not authenticate its backups, so anyone could have changed it since. " +
		"If you know that nobody has, pass --unauthenticated")
	ErrChanged = errors.New("the backup was changed after it was made, or the master key is not that of the backup: " +
		"set PALIMPSEST_SECRET_KEY to the one that was used when it was made. If that is the one you have set, don't restore this backup")
)

// Read returns the manifest of the backup in a directory, after one of the keys has authenticated it. It
// returns ErrUnfinished or ErrChanged. For a backup of a version without authentication it returns
// ErrUnauthenticated together with the manifest.
func Read(dir string, keys [][]byte) (Manifest, error) {
	var manifest Manifest
	content, err := os.ReadFile(filepath.Join(dir, manifestFile)) //nolint:gosec // the operator names the directory
	if errors.Is(err, fs.ErrNotExist) {
		return manifest, fmt.Errorf("%s %w", dir, ErrUnfinished)
	}
	if err != nil {
		return manifest, fmt.Errorf("read the backup's manifest: %w", err)
	}
	has, err := os.ReadFile(filepath.Join(dir, macFile)) //nolint:gosec // the operator names the directory
	isOld := errors.Is(err, fs.ErrNotExist)
	switch {
	case err != nil && !isOld:
		return manifest, fmt.Errorf("read the backup's manifest: %w", err)
	case !isOld && !slices.ContainsFunc(keys, func(key []byte) bool { return hmac.Equal(bytes.TrimSpace(has), macOf(content, key)) }):
		return manifest, ErrChanged
	}
	if err := json.Unmarshal(content, &manifest); err != nil {
		return manifest, fmt.Errorf("read the backup's manifest: %w", err)
	}
	switch {
	case manifest.Version > Version || manifest.Version < unauthenticated:
		return manifest, fmt.Errorf("the backup has the format %d, and this program reads format %d: use the version of the program that made it", manifest.Version, Version)
	case !isOld:
		return manifest, manifest.checkNames()
	case manifest.Version == unauthenticated:
		return manifest, cmp.Or(manifest.checkNames(), ErrUnauthenticated)
	default:
		return manifest, ErrChanged
	}
}

// macOf returns the MAC of a manifest by a key, in hex.
func macOf(manifest, key []byte) []byte {
	mac := hmac.New(sha256.New, key)
	mac.Write(manifest)
	return hex.AppendEncode(nil, mac.Sum(nil))
}

// checkNames returns an error if the manifest names a file other than the program's.
func (m *Manifest) checkNames() error {
	files := map[string]*File{databaseFile: &m.Database, objectsFile: m.Objects.List, secretFile: m.SecretKey}
	for name, file := range files {
		if file != nil && file.Name != name {
			return fmt.Errorf("the manifest names the file %q where it must name %s", file.Name, name)
		}
	}
	return nil
}

// write writes the manifest, and its MAC by key.
func (m *Manifest) write(dir string, key []byte) error {
	encoded, err := json.MarshalIndent(m, "", "  ")
	if err != nil {
		return fmt.Errorf("manifest: %w", err)
	}
	encoded = append(encoded, '\n')
	if _, err := writeFile(dir, manifestFile, encoded); err != nil {
		return err
	}
	_, err = writeFile(dir, macFile, append(macOf(encoded, key), '\n'))
	return err
}
