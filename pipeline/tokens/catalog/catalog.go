// Package catalog replaces the model catalog while the program runs. The new catalog must be signed with
// Ed25519 (RFC 8032). The signature of a file or an address NAME is in NAME.sig, as base64 of its 64 bytes.
package catalog

import (
	"bytes"
	"cmp"
	"context"
	"crypto/ed25519"
	"crypto/x509"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"

	"palimpsest/pipeline/tokens"
)

const (
	// Every is the interval between checks for a new catalog.
	Every = time.Hour

	patience = 30 * time.Second
	maxSig   = 1000 // bytes
	ending   = ".sig"
)

// Source is where to load a catalog from. Place, Key, Models and Log must be set.
type Source struct {
	Place  string            // an absolute path, or an address that begins with http:// or https://
	Key    ed25519.PublicKey // public key of the signature
	Kept   string            // path for storing the last good catalog; "" to not store it
	Models *tokens.Models
	Log    *slog.Logger
	Client *http.Client // optional; the default client if nil
}

// ParseKey reads a public key: base64 of its 32 bytes, or of their PKIX form, which OpenSSL writes.
func ParseKey(text string) (ed25519.PublicKey, error) {
	content, err := base64.StdEncoding.DecodeString(strings.TrimSpace(text))
	if err != nil {
		return nil, errors.New("not base64")
	}
	if len(content) == ed25519.PublicKeySize {
		return content, nil
	}
	key, err := x509.ParsePKIXPublicKey(content)
	if public, is := key.(ed25519.PublicKey); err == nil && is {
		return public, nil
	}
	return nil, errors.New("not an Ed25519 public key")
}

// IsPlace reports whether a place is valid for a catalog.
func IsPlace(place string) bool {
	if filepath.IsAbs(place) {
		return true
	}
	address, err := url.Parse(place)
	return err == nil && (address.Scheme == "https" || address.Scheme == "http") && address.Host != ""
}

// Start loads the catalog, or the last good one if that fails, and then checks regularly for a newer one
// until stop is called.
func (s Source) Start() (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	if err := s.Load(ctx); err != nil {
		s.failed(ctx, err)
		if err := s.restore(); err != nil && !errors.Is(err, os.ErrNotExist) {
			s.Log.WarnContext(ctx, "The last good catalog of models can't be used, the built-in one is", "file", s.Kept, "error", err)
		}
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		ticker := time.NewTicker(Every)
		defer ticker.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-ticker.C:
			}
			if err := s.Load(ctx); err != nil && ctx.Err() == nil {
				s.failed(ctx, err)
			}
		}
	}()
	return func() { cancel(); <-done }
}

func (s Source) failed(ctx context.Context, err error) {
	s.Log.WarnContext(ctx, "The catalog of models wasn't loaded, the one before holds. Check PALIMPSEST_CATALOG and its .sig file", "error", err)
}

// Load loads the catalog and stores it. An error leaves everything unchanged.
func (s Source) Load(ctx context.Context) error {
	content, err := s.read(ctx, "", tokens.MaxCatalog)
	if err != nil {
		return fmt.Errorf("read catalog: %w", err)
	}
	signature, err := s.read(ctx, ending, maxSig)
	if err != nil {
		return fmt.Errorf("read signature: %w", err)
	}
	if err := s.use(content, signature); err != nil {
		return err
	}
	if s.Kept == "" {
		return nil
	}
	if err := errors.Join(write(s.Kept, content), write(s.Kept+ending, signature)); err != nil {
		s.Log.WarnContext(ctx, "The catalog of models holds, and can't be kept for the next start", "error", err)
	}
	return nil
}

// restore uses the last good catalog.
func (s Source) restore() error {
	if s.Kept == "" {
		return nil
	}
	content, err := os.ReadFile(s.Kept)
	if err != nil {
		return err
	}
	signature, err := os.ReadFile(s.Kept + ending)
	if err != nil {
		return err
	}
	return s.use(content, signature)
}

// use activates a catalog if its signature is valid.
func (s Source) use(content, signature []byte) error {
	decoded, err := base64.StdEncoding.DecodeString(string(bytes.TrimSpace(signature)))
	if err != nil || !ed25519.Verify(s.Key, content, decoded) {
		return errors.New("the catalog isn't signed by the key in PALIMPSEST_CATALOG_KEY")
	}
	if err := s.Models.Replace(content); err != nil {
		return fmt.Errorf("the catalog %w", err)
	}
	return nil
}

// read reads the file or address at the place plus an ending.
func (s Source) read(ctx context.Context, ending string, most int64) ([]byte, error) {
	if filepath.IsAbs(s.Place) {
		file, err := os.Open(s.Place + ending) //nolint:gosec // the operator names the file
		if err != nil {
			return nil, err
		}
		defer file.Close() //nolint:errcheck // it is only read
		return bounded(file, most)
	}
	address, err := url.Parse(s.Place)
	if err != nil {
		return nil, errors.New("not an address")
	}
	address.Path += ending
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, address.String(), http.NoBody)
	if err != nil {
		return nil, err
	}
	response, err := cmp.Or(s.Client, http.DefaultClient).Do(request)
	if err != nil {
		return nil, errors.New("its server can't be reached") // the error may contain a secret of the address
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("its server answers with status %d", response.StatusCode)
	}
	return bounded(response.Body, most)
}

func bounded(from io.Reader, most int64) ([]byte, error) {
	content, err := io.ReadAll(io.LimitReader(from, most+1))
	if err == nil && int64(len(content)) > most {
		err = fmt.Errorf("has more than %d bytes", most)
	}
	return content, err
}

// write replaces a file atomically.
func write(path string, content []byte) error {
	if err := os.WriteFile(path+".new", content, 0o600); err != nil {
		return err
	}
	return os.Rename(path+".new", path)
}
