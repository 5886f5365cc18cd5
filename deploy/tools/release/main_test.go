package main

import (
	"bytes"
	"crypto/rand"
	"debug/buildinfo"
	"debug/elf"
	"encoding/binary"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"aead.dev/minisign"
)

// smallProgram returns an ELF file with nothing but this test program's build information. Packing a whole
// program would take most of the tests' time.
func smallProgram(t *testing.T) []byte {
	t.Helper()
	info, err := buildinfo.ReadFile(os.Args[0])
	if err != nil {
		t.Fatal(err)
	}
	const headers, sentinel = 64 + 56, "0123456789abcdef" // the reader cuts the sentinels off
	data := append([]byte("\xff Go buildinf:"), 8, 2)     // the size of a pointer, and that the strings follow
	data = append(data, make([]byte, 32-len(data))...)
	for _, text := range []string{info.GoVersion, sentinel + info.String() + "\n" + sentinel} {
		data = append(binary.AppendUvarint(data, uint64(len(text))), text...)
	}
	var program bytes.Buffer
	for _, part := range []any{
		elf.Header64{
			Ident: [elf.EI_NIDENT]byte{0x7f, 'E', 'L', 'F', byte(elf.ELFCLASS64), byte(elf.ELFDATA2LSB), byte(elf.EV_CURRENT)},
			Type:  uint16(elf.ET_EXEC), Machine: uint16(elf.EM_X86_64), Version: uint32(elf.EV_CURRENT), Phoff: 64, Ehsize: 64, Phentsize: 56, Phnum: 1,
		},
		elf.Prog64{Type: uint32(elf.PT_LOAD), Flags: uint32(elf.PF_R | elf.PF_W), Vaddr: 0x1000, Off: headers, Filesz: uint64(len(data)), Memsz: uint64(len(data)), Align: 8},
		data,
	} {
		if err := binary.Write(&program, binary.LittleEndian, part); err != nil {
			t.Fatal(err)
		}
	}
	return program.Bytes()
}

// packed makes a release of a small program for two platforms and returns its folder.
func packed(t *testing.T, key string) string {
	t.Helper()
	program := smallProgram(t)
	r := release{version: "1.2.3", at: time.Unix(1_700_000_000, 0).UTC(), root: "../../..", bin: t.TempDir(), out: t.TempDir(), man: t.TempDir(), url: "https://example.com/v1.2.3", npm: product}
	if err := os.WriteFile(filepath.Join(r.man, "palimpsest.1"), []byte(".TH PALIMPSEST 1\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, p := range []platform{{"linux", "amd64"}, {"windows", "arm64"}} {
		if err := os.MkdirAll(filepath.Dir(r.path(p)), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(r.path(p), program, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := r.make(key, "secret"); err != nil {
		t.Fatal(err)
	}
	return r.out
}

func TestSameProgramsGiveTheSameBytes(t *testing.T) {
	first, second := packed(t, ""), packed(t, "")
	sums, err := os.ReadFile(filepath.Join(first, "SHA256SUMS"))
	if err != nil {
		t.Fatal(err)
	}
	again, err := os.ReadFile(filepath.Join(second, "SHA256SUMS"))
	if err != nil || string(sums) != string(again) {
		t.Errorf("%v: checksums differ:\n%s\n%s", err, sums, again)
	}
	for _, name := range []string{
		"palimpsest_1.2.3_linux_amd64.tar.gz", "palimpsest_1.2.3_windows_arm64.zip", "palimpsest_1.2.3-1_amd64.deb", "palimpsest-1.2.3-1.x86_64.rpm",
		"palimpsest_1.2.3_image_amd64.tar", "npm-palimpsest-1.2.3.tgz", "npm-palimpsest-linux-x64-1.2.3.tgz", "npm-palimpsest-win32-arm64-1.2.3.tgz",
		"palimpsest_1.2.3.spdx.json", "palimpsest.rb",
	} {
		if !strings.Contains(string(sums), "  "+name+"\n") {
			t.Errorf("no %s among\n%s", name, sums)
		}
	}
}

func TestSBOMNamesTheModules(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(packed(t, ""), "palimpsest_1.2.3.spdx.json"))
	if err != nil {
		t.Fatal(err)
	}
	var document spdxDocument
	if err := json.Unmarshal(text, &document); err != nil {
		t.Fatal(err)
	}
	names, ids := make(map[string]bool), make(map[string]bool)
	for _, one := range document.Packages {
		if ids[one.ID] {
			t.Errorf("two packages have the ID %s", one.ID)
		}
		names[one.Name], ids[one.ID] = true, true
	}
	for _, name := range []string{"palimpsest", "stdlib", "aead.dev/minisign"} {
		if !names[name] {
			t.Errorf("the SBOM lacks %s", name)
		}
	}
}

func TestSignaturesAreThoseOfTheKey(t *testing.T) {
	public, private, err := minisign.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	sealed, err := minisign.EncryptKey("secret", private)
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "key")
	if err := os.WriteFile(file, sealed, 0o600); err != nil {
		t.Fatal(err)
	}
	out := packed(t, file)
	sums, err := os.ReadFile(filepath.Join(out, "SHA256SUMS"))
	if err != nil {
		t.Fatal(err)
	}
	signature, err := os.ReadFile(filepath.Join(out, "SHA256SUMS.minisig"))
	if err != nil {
		t.Fatal(err)
	}
	reader := minisign.NewReader(strings.NewReader(string(sums)))
	if _, err := reader.Read(make([]byte, len(sums))); err != nil || !reader.Verify(public, signature) {
		t.Errorf("%v: the signature does not match", err)
	}
}

func TestWrongVersionsAreRefused(t *testing.T) {
	for _, version := range []string{"", "1", "v1.2.3", "1.2", "01.2.3", "latest"} {
		if err := (release{version: version}).make("", ""); err == nil || !strings.Contains(err.Error(), "semantic version") {
			t.Errorf("%q: %v", version, err)
		}
	}
}
