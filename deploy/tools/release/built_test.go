package main

import (
	"archive/tar"
	"bytes"
	"crypto/rand"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"aead.dev/minisign"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/validate"
	"github.com/spdx/tools-golang/json"
	"github.com/spdx/tools-golang/spdxlib"
)

// built returns a file of the release in the folder RELEASE_DIST, by a pattern in which {arch} stands for
// this machine's. make release-check sets the variable.
func built(t *testing.T, pattern string) string {
	t.Helper()
	folder := os.Getenv("RELEASE_DIST")
	if folder == "" {
		t.Skip("RELEASE_DIST names no release: make release-check builds one")
	}
	if runtime.GOOS != "linux" {
		t.Skip("the packages of Linux are installed on Linux")
	}
	found, err := filepath.Glob(filepath.Join(folder, strings.ReplaceAll(pattern, "{arch}", runtime.GOARCH)))
	if err != nil || len(found) != 1 {
		t.Fatalf("%s: %v, %v", pattern, found, err)
	}
	path, err := filepath.Abs(found[0])
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// does runs a command and returns what it says.
func does(t *testing.T, folder, name string, arguments ...string) string {
	t.Helper()
	if _, err := exec.LookPath(name); err != nil {
		t.Skipf("this machine has no %s", name)
	}
	command := exec.CommandContext(t.Context(), name, arguments...)
	command.Dir = folder
	said, err := command.CombinedOutput()
	if err != nil {
		t.Fatalf("%s %v: %v\n%s", name, arguments, err, said)
	}
	return string(said)
}

func version(t *testing.T) string {
	t.Helper()
	name := filepath.Base(built(t, "palimpsest_*_linux_{arch}.tar.gz"))
	version, _, _ := strings.Cut(strings.TrimPrefix(name, "palimpsest_"), "_linux")
	return version
}

// runs looks whether an installed program says the version of the release.
func runs(t *testing.T, program string, arguments ...string) {
	t.Helper()
	if said := does(t, t.TempDir(), program, append(arguments, "version")...); !strings.HasPrefix(said, "palimpsest "+version(t)+" linux/"+runtime.GOARCH) {
		t.Errorf("it says %s", said)
	}
}

func TestBuiltChecksumsAreThoseOfTheFiles(t *testing.T) {
	does(t, filepath.Dir(built(t, "SHA256SUMS")), "sha256sum", "--check", "--strict", "SHA256SUMS")
}

func TestBuiltArchiveHoldsTheProgramAndItsPages(t *testing.T) {
	folder := t.TempDir()
	does(t, folder, "tar", "-xzf", built(t, "palimpsest_*_linux_{arch}.tar.gz"))
	runs(t, filepath.Join(folder, "palimpsest"))
	if pages, err := filepath.Glob(filepath.Join(folder, "man/man1/palimpsest*.1")); err != nil || len(pages) < 20 {
		t.Errorf("pages are %v, %v", pages, err)
	}
}

func TestBuiltDebianPackageInstalls(t *testing.T) {
	file, root := built(t, "palimpsest_*_{arch}.deb"), t.TempDir()
	does(t, root, "dpkg-deb", "-x", file, root)
	installed(t, root)
	if os.Getuid() != 0 {
		return // only root may have a database of packages
	}
	for _, folder := range []string{"var/lib/dpkg/updates", "var/lib/dpkg/info"} {
		if err := os.MkdirAll(filepath.Join(root, folder), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(root, "var/lib/dpkg/status"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	does(t, root, "dpkg", "--root="+root, "--install", file)
	if said := does(t, root, "dpkg", "--root="+root, "--status", "palimpsest"); !strings.Contains(said, "Status: install ok installed") || !strings.Contains(said, "Version: "+version(t)+"-1") {
		t.Errorf("dpkg says %s", said)
	}
	does(t, root, "dpkg", "--root="+root, "--purge", "palimpsest")
	if _, err := os.Stat(filepath.Join(root, "usr/bin/palimpsest")); !os.IsNotExist(err) {
		t.Errorf("after the purge: %v", err)
	}
}

func TestBuiltRPMPackageHoldsTheSame(t *testing.T) {
	file, root := built(t, "palimpsest-*."+map[string]string{"amd64": "x86_64", "arm64": "aarch64"}[runtime.GOARCH]+".rpm"), t.TempDir()
	does(t, root, "bsdtar", "-xpf", file)
	installed(t, root)
}

// installed looks at the files of a package below a folder.
func installed(t *testing.T, root string) {
	t.Helper()
	runs(t, filepath.Join(root, "usr/bin/palimpsest"))
	for file, mode := range map[string]os.FileMode{
		"usr/bin/palimpsest": 0o755, "usr/lib/systemd/system/palimpsest.service": 0o644, "etc/palimpsest.env": 0o600,
		"usr/share/doc/palimpsest/copyright": 0o644, "usr/share/man/man1/palimpsest-connect.1.gz": 0o644,
	} {
		if about, err := os.Stat(filepath.Join(root, file)); err != nil || about.Mode() != mode {
			t.Errorf("%s: %v, %v", file, about, err)
		}
	}
	unit, err := os.ReadFile(filepath.Join(root, "usr/lib/systemd/system/palimpsest.service"))
	if err != nil || !strings.Contains(string(unit), "ExecStart=/usr/bin/palimpsest serve") {
		t.Errorf("the unit is %s, %v", unit, err)
	}
}

func TestBuiltNPMPackagesInstall(t *testing.T) {
	all, err := filepath.Glob(filepath.Join(filepath.Dir(built(t, "SHA256SUMS")), "npm-palimpsest-"+version(t)+".tgz"))
	if err != nil || len(all) != 1 {
		t.Fatal(all, err)
	}
	cpu := nodeNames[runtime.GOARCH]
	folder := t.TempDir()
	does(t, folder, "npm", "install", "--offline", "--no-audit", "--no-fund", "--prefix", folder, "--cache", t.TempDir(), built(t, "npm-palimpsest-linux-"+cpu+"-*.tgz"), built(t, filepath.Base(all[0])))
	if said := does(t, folder, "npx", "--offline", "palimpsest", "version"); !strings.HasPrefix(said, "palimpsest "+version(t)) {
		t.Errorf("it says %s", said)
	}
}

func TestBuiltImageHoldsTheProgram(t *testing.T) {
	image, err := tarball.ImageFromPath(built(t, "palimpsest_*_image_{arch}.tar"), nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := validate.Image(image); err != nil {
		t.Fatal(err)
	}
	config, err := image.ConfigFile()
	if err != nil || config.Architecture != runtime.GOARCH || !slices.Equal(config.Config.Entrypoint, []string{"/usr/local/bin/palimpsest"}) {
		t.Errorf("the configuration is %+v, %v", config, err)
	}
	files := mutate.Extract(image)
	defer files.Close()
	for packed := tar.NewReader(files); ; {
		header, err := packed.Next()
		if err != nil {
			t.Fatalf("no program: %v", err)
		}
		if header.Name != "usr/local/bin/palimpsest" {
			continue
		}
		program, err := io.ReadAll(packed)
		if err != nil {
			t.Fatal(err)
		}
		same, err := os.ReadFile(built(t, "programs/linux_{arch}/palimpsest"))
		if err != nil || !bytes.Equal(program, same) || header.Mode&0o111 != 0o111 {
			t.Errorf("the image holds another program, or one that cannot be started (mode %o): %v", header.Mode, err)
		}
		return
	}
}

func TestBuiltSBOMIsValid(t *testing.T) {
	file, err := os.Open(built(t, "palimpsest_*.spdx.json"))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	document, err := json.Read(file)
	if err != nil {
		t.Fatal(err)
	}
	if err := spdxlib.ValidateDocument(document); err != nil {
		t.Error(err)
	}
	if len(document.Packages) < 50 {
		t.Errorf("it names %d packages", len(document.Packages))
	}
}

func TestBuiltProgramVerifiesASignature(t *testing.T) {
	public, private, err := minisign.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	sums, err := os.ReadFile(built(t, "SHA256SUMS"))
	if err != nil {
		t.Fatal(err)
	}
	folder := t.TempDir()
	file := filepath.Join(folder, "SHA256SUMS")
	reader := minisign.NewReader(bytes.NewReader(sums))
	if _, err := io.Copy(io.Discard, reader); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file+".minisig", reader.SignWithComments(private, "the sums", ""), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, sums, 0o644); err != nil {
		t.Fatal(err)
	}
	program := built(t, "programs/linux_{arch}/palimpsest")
	if said := does(t, folder, program, "version", "--verify", file, "--key", public.String()); !strings.Contains(said, "signature is valid (the sums)") {
		t.Errorf("it says %s", said)
	}
	if err := os.WriteFile(file, append(sums, ' '), 0o644); err != nil {
		t.Fatal(err)
	}
	if said, err := exec.CommandContext(t.Context(), program, "version", "--verify", file, "--key", public.String()).CombinedOutput(); err == nil {
		t.Errorf("a changed file is valid: %s", said)
	}
}

func TestBuiltFormulaIsRuby(t *testing.T) {
	file := built(t, "palimpsest.rb")
	does(t, t.TempDir(), "ruby", "-c", file)
}
