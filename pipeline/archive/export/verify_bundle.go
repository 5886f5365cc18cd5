package export

import (
	"archive/tar"
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
)

// magic is at magicAt in the first block of a tar (POSIX.1-1988, ustar).
const (
	magic       = "ustar"
	magicAt     = 257
	firstBlock  = 512
	maxTarFiles = 10_000_000
)

// IsBundle reports whether a reader begins with a bundle. It consumes nothing.
func IsBundle(reader *bufio.Reader) bool {
	head, err := reader.Peek(firstBlock)
	return err == nil && bytes.HasPrefix(head[magicAt:], []byte(magic))
}

// BundleTotals are the counts of a bundle.
type BundleTotals struct {
	Totals // of all its sessions; SHA256 is the manifest's, which covers every file

	Files int // without the manifest
}

// VerifyBundle reads a bundle to its end and reports every fault: each file against the manifest, each
// session on its own, and missing, duplicate, reordered or foreign files. It returns an error only if reading
// fails. It keeps a line of a session and the manifest in memory.
func VerifyBundle(from io.Reader, report func(Fault)) (BundleTotals, error) {
	v := &bundleVerifier{report: report}
	reader := tar.NewReader(from)
	for {
		header, err := reader.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			v.faultf("the file is cut off or no tar: %v", err)
			return v.totals, nil
		}
		if v.manifest != nil {
			v.faultf("%s stands behind the manifest", header.Name)
			continue
		}
		if err := v.file(header, reader); err != nil {
			return v.totals, err
		}
	}
	v.finish()
	return v.totals, nil
}

type bundleVerifier struct {
	report   func(Fault)
	totals   BundleTotals
	seen     []bundleFile
	manifest *bundleManifest // nil until it has been read
}

func (v *bundleVerifier) faultf(format string, arguments ...any) {
	v.totals.Faults++
	v.report(Fault{What: fmt.Sprintf(format, arguments...)})
}

// file reads one file of the tar.
func (v *bundleVerifier) file(header *tar.Header, content io.Reader) error {
	if header.Typeflag != tar.TypeReg || len(v.seen) >= maxTarFiles {
		v.faultf("%s is nothing that a bundle has", header.Name)
		return nil
	}
	if header.Name == ManifestName {
		return v.readManifest(content)
	}
	digest := sha256.New()
	hashed := &broken{from: io.TeeReader(content, digest)}
	if err := v.content(header.Name, hashed); err != nil && !hashed.is {
		return err
	}
	if _, err := io.Copy(io.Discard, hashed); err != nil {
		v.faultf("%s is cut off: %v", header.Name, err)
		return nil
	}
	v.seen = append(v.seen, bundleFile{Name: header.Name, Size: header.Size, SHA256: hex.EncodeToString(digest.Sum(nil))})
	v.totals.Files++
	return nil
}

// content verifies the content of a session.
func (v *bundleVerifier) content(name string, content io.Reader) error {
	if !strings.HasPrefix(name, sessionFolder) {
		return nil
	}
	totals, err := Verify(content, func(fault Fault) { v.report(Fault{What: name + ": " + fault.String()}) })
	v.totals.Sessions += totals.Sessions
	v.totals.Lanes += totals.Lanes
	v.totals.Messages += totals.Messages
	v.totals.Answers += totals.Answers
	v.totals.Lines += totals.Lines
	v.totals.Bytes += totals.Bytes
	v.totals.Faults += totals.Faults
	return err
}

func (v *bundleVerifier) readManifest(content io.Reader) error {
	raw, err := io.ReadAll(io.LimitReader(content, maxManifest))
	if err != nil {
		v.faultf("the manifest is cut off: %v", err)
		return nil
	}
	digest := sha256.Sum256(raw)
	v.totals.SHA256 = hex.EncodeToString(digest[:])
	v.manifest = &bundleManifest{}
	decoder := json.NewDecoder(bytes.NewReader(raw))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(v.manifest); err != nil {
		v.faultf("the manifest cannot be read: %v", err)
		return nil
	}
	if v.manifest.Version != BundleVersion {
		v.faultf("the manifest has version %d; this program reads %d", v.manifest.Version, BundleVersion)
	}
	return nil
}

// finish checks the files against the manifest.
func (v *bundleVerifier) finish() {
	if v.manifest == nil {
		v.faultf("there is no manifest: the bundle is not whole")
		return
	}
	for i := range max(len(v.seen), len(v.manifest.Files)) {
		switch {
		case i >= len(v.manifest.Files):
			v.faultf("%s is not in the manifest", v.seen[i].Name)
		case i >= len(v.seen):
			v.faultf("%s is missing", v.manifest.Files[i].Name)
		case v.seen[i].Name != v.manifest.Files[i].Name:
			v.faultf("%s stands where the manifest has %s", v.seen[i].Name, v.manifest.Files[i].Name)
		case v.seen[i] != v.manifest.Files[i]:
			v.faultf("%s has the SHA-256 %s, the manifest says %s", v.seen[i].Name, v.seen[i].SHA256, v.manifest.Files[i].SHA256)
		}
	}
}

// broken notes whether reading has failed, because a truncated tar is a fault of the file and not a failure
// of the verification.
type broken struct {
	from io.Reader
	is   bool
}

// Read implements io.Reader.
func (b *broken) Read(p []byte) (int, error) {
	n, err := b.from.Read(p)
	if err != nil && !errors.Is(err, io.EOF) {
		b.is = true
	}
	return n, err
}
