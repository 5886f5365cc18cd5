// Package static holds the dashboard's style sheet, scripts, fonts and vendored libraries and serves them
// under names with a hash of their content.
package static

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"fmt"
	"io/fs"
	"mime"
	"net/http"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
)

// Prefix is the path below which Handler serves.
const Prefix = "/static/"

// hashDigits is how many digits of a file's SHA-256 its name contains.
const hashDigits = 16

//go:embed css js vendor
var embedded embed.FS

// files are read once, because they are part of the program.
var files = sync.OnceValue(load)

// asset is a served file.
type asset struct {
	url         string
	contentType string
	tag         string // its ETag
	body        []byte
	zipped      []byte // body with gzip; nil unless smaller
}

// assets are all files by their name in this package and by their URL.
type assets struct {
	byName map[string]*asset
	byURL  map[string]*asset

	sheet, script *asset // bundles of several files
}

// URL returns the path of a served file of this package, such as "/static/css/app.0123456789abcdef.css" for
// "css/app.css". It panics for a file that does not exist.
func URL(name string) string {
	found, ok := files().byName[name]
	if !ok {
		panic("static: no file " + name)
	}
	return found.url
}

// Sheet returns the URL of the style sheet of every page.
func Sheet() string { return files().sheet.url }

// Script returns the URL of the script that every page runs after it is read. The theme's is not part of it,
// because it runs before.
func Script() string { return files().script.url }

// bundled returns the vendored files and the dashboard's own ones that every page needs, in the order in which
// they work: the first sheet of our own names the layers, and other scripts use the charts of the first.
func bundled() (sheets, scripts []string) {
	sheets = own([]string{"vendor/uplot-1.6.32/uPlot.min.css", "css/app.css"}, "css/*.css")
	return sheets, own([]string{"vendor/htmx-4.0.1/htmx.min.js", "vendor/uplot-1.6.32/uPlot.iife.min.js", "js/chart.js"}, "js/*.js")
}

// own returns the first files and those that match a pattern.
func own(first []string, pattern string) []string {
	names, err := fs.Glob(embedded, pattern)
	if err != nil {
		panic("static: " + err.Error()) // the patterns are part of the program
	}
	return append(first, slices.DeleteFunc(names, func(name string) bool { return slices.Contains(first, name) || name == "js/theme.js" })...)
}

// Handler serves the files under URL's paths. The content under a path never changes, so browsers may cache
// it permanently.
func Handler() http.Handler { return http.HandlerFunc(serve) }

func serve(w http.ResponseWriter, request *http.Request) {
	found, ok := files().byURL[request.URL.Path]
	if !ok {
		http.NotFound(w, request)
		return
	}
	header := w.Header()
	header.Set("Content-Type", found.contentType)
	header.Set("Cache-Control", "public, max-age=31536000, immutable")
	header.Set("X-Content-Type-Options", "nosniff")
	header.Set("ETag", found.tag)
	header.Set("Vary", "Accept-Encoding")
	if request.Header.Get("If-None-Match") == found.tag {
		w.WriteHeader(http.StatusNotModified)
		return
	}
	body := found.body
	if found.zipped != nil && strings.Contains(request.Header.Get("Accept-Encoding"), "gzip") {
		header.Set("Content-Encoding", "gzip")
		body = found.zipped
	}
	header.Set("Content-Length", strconv.Itoa(len(body)))
	if request.Method == http.MethodHead {
		return
	}
	_, _ = w.Write(body) // the browser left
}

// load reads all files, style sheets last because they contain the fonts' URLs.
func load() assets {
	all := assets{byName: map[string]*asset{}, byURL: map[string]*asset{}}
	var sheets []string
	err := fs.WalkDir(embedded, ".", func(name string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil || entry.IsDir():
			return err
		case path.Ext(name) == ".css":
			sheets = append(sheets, name)
			return nil
		}
		return all.add(name, func(body []byte) ([]byte, error) { return body, nil })
	})
	for _, name := range sheets {
		if err == nil {
			err = all.add(name, func(body []byte) ([]byte, error) { return all.linked(path.Dir(name), body) })
		}
	}
	if err != nil {
		panic("static: " + err.Error()) // the files are part of the program
	}
	sheets, scripts := bundled()
	all.sheet, all.script = all.bundle("css/all.css", sheets), all.bundle("js/all.js", scripts)
	return all
}

// bundle adds files, one after another, under one name.
func (a assets) bundle(name string, of []string) *asset {
	var body []byte
	for _, file := range of {
		body = append(append(body, a.byName[file].body...), '\n')
		if path.Ext(name) == ".js" {
			body = append(body, ";\n"...) // ends a statement that the next file would continue
		}
	}
	return a.put(name, body)
}

// add adds a file after applying change.
func (a assets) add(name string, change func([]byte) ([]byte, error)) error {
	body, err := embedded.ReadFile(name)
	if err != nil {
		return err
	}
	if body, err = change(body); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	a.put(name, body)
	return nil
}

// put adds content under a name.
func (a assets) put(name string, body []byte) *asset {
	sum := sha256.Sum256(body)
	hash := hex.EncodeToString(sum[:])[:hashDigits]
	extension := path.Ext(name)
	contentType := mime.TypeByExtension(extension)
	if extension == ".woff2" {
		contentType = "font/woff2" // some systems don't know the type
	}
	if contentType == "" {
		contentType = "text/plain; charset=utf-8" // licenses and checksums
	}
	added := &asset{
		url:         Prefix + strings.TrimSuffix(name, extension) + "." + hash + extension,
		contentType: contentType, tag: `"` + hash + `"`, body: body, zipped: zip(body),
	}
	a.byName[name], a.byURL[added.url] = added, added
	return added
}

// linked replaces the names of files in a style sheet by their URLs.
func (a assets) linked(dir string, sheet []byte) ([]byte, error) {
	var missing error
	named := regexp.MustCompile(`url\("([^"]+)"\)`)
	out := named.ReplaceAllFunc(sheet, func(match []byte) []byte {
		name := path.Join(dir, string(named.FindSubmatch(match)[1]))
		found, ok := a.byName[name]
		if !ok {
			missing = fmt.Errorf("no file %s", name)
			return match
		}
		return []byte(`url("` + found.url + `")`)
	})
	return out, missing
}

// zip returns body with gzip, or nil if that saves less than a tenth.
func zip(body []byte) []byte {
	var out bytes.Buffer
	writer, _ := gzip.NewWriterLevel(&out, gzip.BestCompression) // the level exists
	_, _ = writer.Write(body)                                    // writing to memory does not fail
	_ = writer.Close()
	if out.Len() > len(body)*9/10 {
		return nil
	}
	return out.Bytes()
}
