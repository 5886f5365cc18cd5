package main

import (
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/goreleaser/nfpm/v2"
	_ "github.com/goreleaser/nfpm/v2/deb" // registers itself
	"github.com/goreleaser/nfpm/v2/files"
	_ "github.com/goreleaser/nfpm/v2/rpm" // registers itself
)

const unitFile = "deploy/systemd/palimpsest.service"

const about = "Proxy for LLM APIs in which no session ends at a full context window"

// linuxPackages writes a Debian and an RPM package with the systemd unit.
func (r release) linuxPackages(p platform) error {
	scratch, err := os.MkdirTemp("", "release")
	if err != nil {
		return err
	}
	defer os.RemoveAll(scratch)
	unit, err := os.ReadFile(filepath.Join(r.root, unitFile))
	if err != nil {
		return err
	}
	// Packages put programs into /usr/bin and replace the copying that the comments describe.
	_, body, found := strings.Cut(string(unit), "[Unit]")
	if body = strings.ReplaceAll(body, "/usr/local/bin/", "/usr/bin/"); !found {
		return fmt.Errorf("%s has no section [Unit]", unitFile)
	}
	service, settings := filepath.Join(scratch, "palimpsest.service"), filepath.Join(scratch, "palimpsest.env")
	err = errors.Join(
		os.WriteFile(service, []byte("# Settings are in /etc/palimpsest.env.\n[Unit]"+body), 0o644),
		os.WriteFile(settings, []byte("# Settings of Palimpsest, one NAME=value a line; docs/operations.md lists them.\n"), 0o600),
	)
	if err != nil {
		return err
	}
	pages, err := r.zippedPages(scratch)
	if err != nil {
		return err
	}
	for kind, database := range map[string][]string{"deb": {"postgresql"}, "rpm": {"postgresql-server", "postgresql-contrib"}} {
		if err := r.linuxPackage(p, kind, database, service, settings, pages); err != nil {
			return err
		}
	}
	return nil
}

// zippedPages writes the manual pages in the packages' format.
func (r release) zippedPages(folder string) ([]string, error) {
	pages, err := r.manPages()
	for i, page := range pages {
		content, readErr := os.ReadFile(page)
		pages[i] = filepath.Join(folder, filepath.Base(page)+".gz")
		err = errors.Join(err, readErr, toFile(pages[i], func(w io.Writer) error {
			zipped, err := gzip.NewWriterLevel(w, gzip.BestCompression)
			if err != nil {
				return err
			}
			_, err = zipped.Write(content)
			return errors.Join(err, zipped.Close())
		}))
	}
	return pages, err
}

func (r release) linuxPackage(p platform, kind string, database []string, service, settings string, pages []string) error {
	file := func(source, destination, kind string, mode os.FileMode) *files.Content {
		return &files.Content{Source: source, Destination: destination, Type: kind,
			FileInfo: &files.ContentFileInfo{Owner: "root", Group: "root", Mode: mode, MTime: r.at}}
	}
	info := nfpm.WithDefaults(&nfpm.Info{
		Name: product, Arch: p.arch, Platform: p.os, Version: r.version, Release: "1", Section: "net", Priority: "optional",
		Maintainer: "The Palimpsest authors <palimpsest@localhost>", Description: about, License: "Apache-2.0", MTime: r.at,
		Overridables: nfpm.Overridables{
			Recommends: database,
			Contents: files.Contents{
				file(r.path(p), "/usr/bin/palimpsest", "", 0o755),
				file(service, "/usr/lib/systemd/system/palimpsest.service", "", 0o644),
				file(settings, "/etc/palimpsest.env", "config|noreplace", 0o600),
				file(filepath.Join(r.root, "LICENSE"), "/usr/share/doc/palimpsest/copyright", "", 0o644),
			},
			RPM: nfpm.RPM{BuildHost: "release"},
		},
	})
	for _, page := range pages {
		info.Contents = append(info.Contents, file(page, "/usr/share/man/man1/"+filepath.Base(page), "", 0o644))
	}
	packager, err := nfpm.Get(kind)
	if err != nil {
		return err
	}
	return toFile(filepath.Join(r.out, packager.ConventionalFileName(info)), func(w io.Writer) error { return packager.Package(info, w) })
}
