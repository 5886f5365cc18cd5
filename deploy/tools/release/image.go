package main

import (
	"bytes"
	"encoding/pem"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"golang.org/x/crypto/x509roots/fallback/bundle"
)

// image writes an image with only the program, certificates and a user, as a file for docker load and podman
// load. It has no PostgreSQL, so users set DATABASE_URL.
func (r release) image(p platform) error {
	program, err := os.ReadFile(r.path(p))
	if err != nil {
		return err
	}
	var roots bytes.Buffer
	for root := range bundle.Roots() {
		if root.Constraint != nil {
			continue // a file of certificates can't express further limits
		}
		if err := pem.Encode(&roots, &pem.Block{Type: "CERTIFICATE", Bytes: root.Certificate}); err != nil {
			return err
		}
	}
	user := []byte("palimpsest:x:10001:10001::/var/lib/palimpsest:/usr/local/bin/palimpsest\n")
	entries := []entry{
		{"etc/", 0o755, nil}, {"etc/passwd", 0o644, user}, {"etc/ssl/", 0o755, nil}, {"etc/ssl/certs/", 0o755, nil},
		{"etc/ssl/certs/ca-certificates.crt", 0o644, roots.Bytes()}, {"tmp/", 0o1777, nil},
		{"usr/", 0o755, nil}, {"usr/local/", 0o755, nil}, {"usr/local/bin/", 0o755, nil}, {"usr/local/bin/palimpsest", 0o755, program},
		{"var/", 0o755, nil}, {"var/lib/", 0o755, nil}, {"var/lib/palimpsest/", 0o1777, nil},
	}
	var packed bytes.Buffer
	if err := writeTar(&packed, entries, r.at); err != nil {
		return err
	}
	layer, err := tarball.LayerFromOpener(func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(packed.Bytes())), nil })
	if err != nil {
		return err
	}
	image, err := mutate.AppendLayers(empty.Image, layer)
	if err != nil {
		return err
	}
	image, err = mutate.ConfigFile(image, r.imageConfig(image, p))
	if err != nil {
		return err
	}
	tag, err := name.NewTag(product + ":" + r.version)
	if err != nil {
		return err
	}
	return tarball.WriteToFile(filepath.Join(r.out, fmt.Sprintf("%s_%s_image_%s.tar", product, r.version, p.arch)), tag, image)
}

func (r release) imageConfig(image v1.Image, p platform) *v1.ConfigFile {
	config, _ := image.ConfigFile() // of an image in memory
	config = config.DeepCopy()
	config.OS, config.Architecture, config.Created = p.os, p.arch, v1.Time{Time: r.at}
	config.Config = v1.Config{
		User: "10001:10001", WorkingDir: "/var/lib/palimpsest", StopSignal: "SIGTERM",
		Entrypoint: []string{"/usr/local/bin/palimpsest"}, Cmd: []string{"serve"},
		Env: []string{
			"PATH=/usr/local/bin", "PALIMPSEST_ADDR=0.0.0.0:8080", "PALIMPSEST_ADMIN_ADDR=0.0.0.0:9090", "PALIMPSEST_DATA_DIR=/var/lib/palimpsest",
		},
		ExposedPorts: map[string]struct{}{"8080/tcp": {}, "9090/tcp": {}}, Volumes: map[string]struct{}{"/var/lib/palimpsest": {}},
		Labels: map[string]string{"org.opencontainers.image.title": product, "org.opencontainers.image.version": r.version, "org.opencontainers.image.licenses": "Apache-2.0"},
	}
	return config
}
