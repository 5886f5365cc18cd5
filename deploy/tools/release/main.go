// Command release packs programs built for several platforms: archives, Debian and RPM packages, an image,
// npm packages, a Homebrew formula, an SBOM, checksums and signatures. The same programs and flags give the
// same bytes.
package main

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"aead.dev/minisign"
)

const product = "palimpsest"

// release is the release to pack.
type release struct {
	version string
	at      time.Time // of every file
	root    string    // the repository
	bin     string    // holds OS_ARCH/palimpsest
	man     string    // holds the manual pages; optional
	out     string
	url     string // the folder on the web with the files; optional
	npm     string // name of the npm package
}

// platform is an operating system and an architecture.
type platform struct{ os, arch string }

func (p platform) program() string {
	if p.os == "windows" {
		return product + ".exe"
	}
	return product
}

func (r release) path(p platform) string { return filepath.Join(r.bin, p.os+"_"+p.arch, p.program()) }

func main() {
	var (
		r     release
		epoch int64
		key   string
	)
	flag.StringVar(&r.version, "version", "", "semantic version, without v")
	flag.StringVar(&r.root, "root", ".", "the repository")
	flag.StringVar(&r.bin, "bin", "", "folder with OS_ARCH/palimpsest")
	flag.StringVar(&r.man, "man", "", "folder with the manual pages; none are packed if absent")
	flag.StringVar(&r.out, "out", "", "folder to write to")
	flag.StringVar(&r.url, "url", "", "folder on the web that will hold the files; needed for the Homebrew formula")
	flag.StringVar(&r.npm, "npm", product, "name of the npm package")
	flag.StringVar(&key, "key", "", "file with minisign's private key; RELEASE_KEY_PASSWORD holds its password; no signatures if absent")
	flag.Int64Var(&epoch, "epoch", 0, "Unix time of every file")
	flag.Parse()
	r.at = time.Unix(epoch, 0).UTC()
	if err := r.make(key, os.Getenv("RELEASE_KEY_PASSWORD")); err != nil {
		fmt.Fprintln(os.Stderr, "release:", err)
		os.Exit(1)
	}
}

func (r release) make(key, password string) error {
	if !regexp.MustCompile(`^(0|[1-9]\d*)\.(0|[1-9]\d*)\.(0|[1-9]\d*)(-[0-9A-Za-z.-]+)?$`).MatchString(r.version) {
		return fmt.Errorf("%q is not a semantic version: it looks like 1.2.3 or 1.2.3-rc.1", r.version)
	}
	platforms, err := r.platforms()
	if err != nil {
		return err
	}
	if err := os.MkdirAll(r.out, 0o755); err != nil {
		return err
	}
	for _, p := range platforms {
		if err := r.archive(p); err != nil {
			return fmt.Errorf("archive for %s %s: %w", p.os, p.arch, err)
		}
		if p.os != "linux" {
			continue
		}
		if err := errors.Join(r.linuxPackages(p), r.image(p)); err != nil {
			return fmt.Errorf("packages for %s: %w", p.arch, err)
		}
	}
	if err := errors.Join(r.npmPackages(platforms), r.sbom(platforms)); err != nil {
		return err
	}
	if r.url != "" {
		if err := r.formula(platforms); err != nil {
			return err
		}
	}
	if err := r.sums(); err != nil {
		return err
	}
	if key == "" {
		return nil
	}
	return r.sign(key, password)
}

// platforms lists the platforms with a built program.
func (r release) platforms() ([]platform, error) {
	entries, err := os.ReadDir(r.bin)
	if err != nil {
		return nil, err
	}
	var found []platform
	for _, entry := range entries {
		if system, arch, is := strings.Cut(entry.Name(), "_"); is {
			found = append(found, platform{system, arch})
		}
	}
	if len(found) == 0 {
		return nil, fmt.Errorf("%s holds no program", r.bin)
	}
	return found, nil
}

// files lists the written files.
func (r release) files() ([]string, error) {
	entries, err := os.ReadDir(r.out)
	if err != nil {
		return nil, err
	}
	var names []string
	for _, entry := range entries {
		if entry.Type().IsRegular() {
			names = append(names, entry.Name())
		}
	}
	slices.Sort(names)
	return names, nil
}

func sha256Of(path string) (string, error) {
	file, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer file.Close()
	hash := sha256.New()
	_, err = io.Copy(hash, file)
	return fmt.Sprintf("%x", hash.Sum(nil)), err
}

func (r release) sums() error {
	names, err := r.files()
	if err != nil {
		return err
	}
	var list bytes.Buffer
	for _, name := range names {
		sum, err := sha256Of(filepath.Join(r.out, name))
		if err != nil {
			return err
		}
		fmt.Fprintf(&list, "%s  %s\n", sum, name)
	}
	return os.WriteFile(filepath.Join(r.out, "SHA256SUMS"), list.Bytes(), 0o644)
}

// sign writes a signature beside every file.
func (r release) sign(keyFile, password string) error {
	key, err := minisign.PrivateKeyFromFile(password, keyFile)
	if err != nil {
		return fmt.Errorf("key of the release: %w", err)
	}
	names, err := r.files()
	if err != nil {
		return err
	}
	for _, name := range names {
		file, err := os.Open(filepath.Join(r.out, name))
		if err != nil {
			return err
		}
		reader := minisign.NewReader(file)
		if _, err := io.Copy(io.Discard, reader); err != nil {
			return err
		}
		text := reader.SignWithComments(key, fmt.Sprintf("%s %s, file %s", product, r.version, name), "signature of a release of "+product)
		if err := errors.Join(file.Close(), os.WriteFile(filepath.Join(r.out, name+".minisig"), text, 0o644)); err != nil {
			return err
		}
	}
	return nil
}
