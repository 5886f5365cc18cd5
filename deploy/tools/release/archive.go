package main

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"
)

// entry is a file of an archive.
type entry struct {
	name    string
	mode    int64
	content []byte
}

// name returns the name of a platform's archive.
func (r release) name(p platform) string {
	ending := "tar.gz"
	if p.os == "windows" {
		ending = "zip"
	}
	return fmt.Sprintf("%s_%s_%s_%s.%s", product, r.version, p.os, p.arch, ending)
}

// archive writes the program, the license and on Linux the systemd unit into an archive.
func (r release) archive(p platform) error {
	sources := []struct {
		path, name string
		mode       int64
	}{{r.path(p), p.program(), 0o755}, {filepath.Join(r.root, "LICENSE"), "LICENSE", 0o644}, {filepath.Join(r.root, "README.md"), "README.md", 0o644}}
	if p.os == "linux" {
		sources = append(sources, struct {
			path, name string
			mode       int64
		}{filepath.Join(r.root, unitFile), "palimpsest.service", 0o644})
	}
	var entries []entry
	for _, source := range sources {
		content, err := os.ReadFile(source.path)
		if err != nil {
			return err
		}
		entries = append(entries, entry{source.name, source.mode, content})
	}
	pages, err := r.manPages()
	if err != nil {
		return err
	}
	for _, page := range pages {
		content, err := os.ReadFile(page)
		if err != nil {
			return err
		}
		entries = append(entries, entry{"man/man1/" + filepath.Base(page), 0o644, content})
	}
	write := writeTarGzip
	if p.os == "windows" {
		write = writeZip
	}
	return toFile(filepath.Join(r.out, r.name(p)), func(w io.Writer) error { return write(w, entries, r.at) })
}

// manPages lists the manual pages.
func (r release) manPages() ([]string, error) {
	if r.man == "" {
		return nil, nil
	}
	return filepath.Glob(filepath.Join(r.man, "*.1"))
}

// toFile creates a file, lets write fill it and closes it.
func toFile(path string, write func(io.Writer) error) error {
	file, err := os.Create(path)
	if err != nil {
		return err
	}
	return errors.Join(write(file), file.Close())
}

func writeTar(w io.Writer, entries []entry, at time.Time) error {
	packed := tar.NewWriter(w)
	for _, e := range entries {
		header := &tar.Header{Name: e.name, Mode: e.mode, Size: int64(len(e.content)), ModTime: at, Format: tar.FormatPAX}
		if e.name[len(e.name)-1] == '/' {
			header.Typeflag = tar.TypeDir
		}
		if err := packed.WriteHeader(header); err != nil {
			return err
		}
		if _, err := packed.Write(e.content); err != nil {
			return err
		}
	}
	return packed.Close()
}

func writeTarGzip(w io.Writer, entries []entry, at time.Time) error {
	zipped, err := gzip.NewWriterLevel(w, gzip.BestCompression)
	if err != nil {
		return err
	}
	return errors.Join(writeTar(zipped, entries, at), zipped.Close())
}

func writeZip(w io.Writer, entries []entry, at time.Time) error {
	packed := zip.NewWriter(w)
	for _, e := range entries {
		header := &zip.FileHeader{Name: e.name, Method: zip.Deflate, Modified: at}
		header.SetMode(os.FileMode(e.mode))
		file, err := packed.CreateHeader(header)
		if err != nil {
			return err
		}
		if _, err := io.Copy(file, bytes.NewReader(e.content)); err != nil {
			return err
		}
	}
	return packed.Close()
}
