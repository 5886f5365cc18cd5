package export

import (
	"archive/tar"
	"bufio"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/google/uuid"

	"palimpsest/pipeline/archive"
	"palimpsest/tenants"
)

// ManifestName is the name of the last file of a bundle.
const ManifestName = "manifest.json"

// BundleVersion is the version of the bundle format.
const BundleVersion = 1

// sessionFolder holds a bundle's sessions, each a complete export.
const sessionFolder = "sessions/"

// maxManifest bounds the size of a manifest on reading, in bytes.
const maxManifest = 512 << 20

// bundleManifest lists every other file of a bundle, in order.
type bundleManifest struct {
	Version    int                 `json:"palimpsest_bundle"`
	Workspace  tenants.WorkspaceID `json:"workspace"`
	ExportedAt time.Time           `json:"exported_at"`
	Files      []bundleFile        `json:"files"`
}

type bundleFile struct {
	Name   string `json:"name"`
	Size   int64  `json:"size"`
	SHA256 string `json:"sha256"`
}

// Bundle writes a workspace's data as one tar: its files, and last a manifest with the SHA-256 of each. A
// file of unknown size is first written to an unlinked temporary file, so that memory stays bounded.
type Bundle struct {
	tar      *tar.Writer
	manifest bundleManifest
}

// NewBundle returns a Bundle of a workspace that writes to w.
func NewBundle(w io.Writer, workspace tenants.WorkspaceID, at time.Time) *Bundle {
	return &Bundle{
		tar:      tar.NewWriter(w),
		manifest: bundleManifest{Version: BundleVersion, Workspace: workspace, ExportedAt: at.UTC(), Files: []bundleFile{}},
	}
}

// File adds a file with the content that write produces.
func (b *Bundle) File(name string, write func(w io.Writer) error) (err error) {
	spool, err := os.CreateTemp("", "palimpsest-export-*")
	if err != nil {
		return fmt.Errorf("bundle %s: %w", name, err)
	}
	defer func() { err = errors.Join(err, spool.Close()) }()
	if err := os.Remove(spool.Name()); err != nil { // so that no file is left, however the process ends
		return fmt.Errorf("bundle %s: %w", name, err)
	}
	digest := sha256.New()
	buffered := bufio.NewWriterSize(io.MultiWriter(spool, digest), 64<<10)
	if err := errors.Join(write(buffered), buffered.Flush()); err != nil {
		return fmt.Errorf("bundle %s: %w", name, err)
	}
	size, err := spool.Seek(0, io.SeekCurrent)
	if err == nil {
		_, err = spool.Seek(0, io.SeekStart)
	}
	if err != nil {
		return fmt.Errorf("bundle %s: %w", name, err)
	}
	if err := b.add(name, size, spool); err != nil {
		return err
	}
	b.manifest.Files = append(b.manifest.Files, bundleFile{Name: name, Size: size, SHA256: hex.EncodeToString(digest.Sum(nil))})
	return nil
}

// SessionFile adds a session's export.
func (b *Bundle) SessionFile(id uuid.UUID, write func(w io.Writer) error) error {
	return b.File(sessionFolder+id.String()+".ndjson", write)
}

// Bytes adds a file with content.
func (b *Bundle) Bytes(name string, content []byte) error {
	if err := b.write(name, content); err != nil {
		return err
	}
	digest := sha256.Sum256(content)
	b.manifest.Files = append(b.manifest.Files, bundleFile{Name: name, Size: int64(len(content)), SHA256: hex.EncodeToString(digest[:])})
	return nil
}

// Originals adds each message of a session as a file with its bytes, at originals/LANE/INDEX-ROLE.json.
// Messages shared with the parent lane are only in the parent's folder. A damaged message has no file, and
// the session's export reports it.
func (b *Bundle) Originals(ctx context.Context, from archive.Reader, session Session) error {
	known := map[uuid.UUID]bool{}
	for _, lane := range session.Lanes {
		known[lane.ID] = true
	}
	for _, lane := range session.Lanes {
		err := archive.Restore(ctx, from, session.Workspace, lane.ID, lane.Messages, func(message archive.Restored) error {
			isShared := message.Index < lane.ForkAt && known[lane.Parent]
			if isShared || message.Raw == nil {
				return nil
			}
			return b.Bytes(fmt.Sprintf("originals/%s/%06d-%s.json", lane.ID, message.Index, message.Role), message.Raw)
		})
		if err != nil && !errors.Is(err, archive.ErrDamaged) {
			return fmt.Errorf("bundle originals of lane %s: %w", lane.ID, err)
		}
	}
	return nil
}

// JSON adds a file with one value.
func (b *Bundle) JSON(name string, value any) error {
	return b.File(name, func(w io.Writer) error {
		encoder := json.NewEncoder(w)
		encoder.SetIndent("", "  ")
		return encoder.Encode(value)
	})
}

// Close adds the manifest and ends the bundle. A bundle without it is incomplete, and verification reports
// that.
func (b *Bundle) Close() error {
	manifest, err := json.MarshalIndent(b.manifest, "", "  ")
	if err != nil {
		return fmt.Errorf("bundle: %w", err)
	}
	if err := b.write(ManifestName, manifest); err != nil {
		return err
	}
	if err := b.tar.Close(); err != nil {
		return fmt.Errorf("bundle: %w", err)
	}
	return nil
}

func (b *Bundle) write(name string, content []byte) error {
	if err := b.header(name, int64(len(content))); err != nil {
		return err
	}
	if _, err := b.tar.Write(content); err != nil {
		return fmt.Errorf("bundle %s: %w", name, err)
	}
	return nil
}

func (b *Bundle) add(name string, size int64, content io.Reader) error {
	if err := b.header(name, size); err != nil {
		return err
	}
	if _, err := io.Copy(b.tar, content); err != nil {
		return fmt.Errorf("bundle %s: %w", name, err)
	}
	return nil
}

func (b *Bundle) header(name string, size int64) error {
	const readable = 0o600
	err := b.tar.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: name, Size: size, Mode: readable, ModTime: b.manifest.ExportedAt})
	if err != nil {
		return fmt.Errorf("bundle %s: %w", name, err)
	}
	return nil
}
