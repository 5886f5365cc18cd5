package snapshot

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"
)

// The files of a backup.
const (
	manifestFile = "manifest.json"
	databaseFile = "database.dump"
	objectsDir   = "objects"
	objectsFile  = "objects.sha256"
	secretFile   = "secret.key"
)

// Version is the version of the backups that are written and read.
const Version = 1

// The modes of what a backup is made of: for this program's user only.
const (
	directoryMode = 0o700
	fileMode      = 0o600
)

// Where the objects of a bucket are.
const (
	ObjectsNone      = "none"      // there was no bucket: the database holds everything
	ObjectsHere      = "here"      // in the backup
	ObjectsElsewhere = "elsewhere" // in the bucket, which the backup was told to leave out
)

// Manifest says what a backup holds.
type Manifest struct {
	Version   int       `json:"palimpsest_backup"`
	MadeAt    time.Time `json:"made_at"`   // the moment whose database it holds, by the database's clock
	Migration int64     `json:"migration"` // of the schema
	Server    string    `json:"server"`    // version of PostgreSQL
	Counts    Counts    `json:"counts"`
	Database  File      `json:"database"`
	Roles     []string  `json:"roles"`  // that the schema grants something to
	Owners    []Owner   `json:"owners"` // of what does not belong to the database's owner
	Objects   Objects   `json:"objects"`
	SecretKey *File     `json:"secret_key,omitempty"` // nil if the backup holds none
	Proof     []byte    `json:"master_key_proof"`     // opens with the master key of the installation
}

// Counts says how much a database holds, for people and for comparison.
type Counts struct {
	Workspaces int64 `json:"workspaces"`
	Sessions   int64 `json:"sessions"`
	Exchanges  int64 `json:"exchanges"`
}

// Owner says to which role a function belongs that does not belong to the database's owner.
type Owner struct {
	Function string `json:"function"` // with the types of its arguments, as ALTER FUNCTION takes it
	Role     string `json:"role"`
	Called   bool   `json:"called"` // the database's owner may call it, too
}

// Objects says where the bucket's objects are.
type Objects struct {
	Where string `json:"where"`
	Count int64  `json:"count"`
	Bytes int64  `json:"bytes"`
	List  *File  `json:"list,omitempty"` // with a line for each of those that are in the backup
}

// File is a file of a backup.
type File struct {
	Name   string `json:"name"`
	Bytes  int64  `json:"bytes"`
	SHA256 string `json:"sha256"`
}

// ErrUnfinished says that a directory is no whole backup.
var ErrUnfinished = errors.New("is no whole backup: it has no " + manifestFile)

// Read returns the manifest of the backup in a directory.
func Read(dir string) (Manifest, error) {
	var manifest Manifest
	content, err := os.ReadFile(filepath.Join(dir, manifestFile)) //nolint:gosec // the operator names the directory
	if errors.Is(err, fs.ErrNotExist) {
		return manifest, fmt.Errorf("%s %w", dir, ErrUnfinished)
	}
	if err == nil {
		err = json.Unmarshal(content, &manifest)
	}
	if err != nil {
		return manifest, fmt.Errorf("read the backup's manifest: %w", err)
	}
	if manifest.Version != Version {
		return manifest, fmt.Errorf("the backup has the format %d, and this program reads format %d: use the version of the program that made it", manifest.Version, Version)
	}
	return manifest, nil
}

func (m *Manifest) write(dir string) error {
	encoded, err := json.MarshalIndent(m, "", "  ")
	if err != nil {
		return fmt.Errorf("manifest: %w", err)
	}
	_, err = writeFile(dir, manifestFile, append(encoded, '\n'))
	return err
}
