package api

import (
	"fmt"
	"net/http"
	"strconv"
	"strings"

	"palimpsest/api/proxysettings"
	"palimpsest/pipeline"
	"palimpsest/tenants"
)

// maxID bounds the ids of sessions, lanes and end users in headers, in bytes.
const maxID = 255

// controls holds a client's settings for the proxy from its request headers. All of these headers are removed
// before the provider sees the request.
type controls struct {
	session   string
	lane      string
	endUser   string // the application's id of its user; "" as in the body
	pipe      string // modules, comma-separated; "none" for an empty pipeline; "" as configured
	bypass    bool
	dryRun    bool
	noStore   bool   // keep nothing of the exchange; also where the workspace or the key says so
	target    string // targetUtilization; "" as configured
	choice    proxysettings.Choice
	overrides []string // names of the headers among them that override settings
	tags      tenants.Tags
}

// readControls reads the X-Palimpsest-* headers and their older spellings.
func readControls(header http.Header) (controls, error) {
	asked := controls{
		overrides: overridesIn(header),

		session: header.Get("X-Palimpsest-Session-Id"),
		lane:    header.Get("X-Palimpsest-Lane"),
		endUser: header.Get("X-Palimpsest-User"),
		pipe:    first(header, "X-Palimpsest-Pipe", "X-Prxy-Pipe"),
		target:  header.Get("X-Palimpsest-Target-Utilization"),
		choice: proxysettings.Choice{
			Provider: header.Get("X-Palimpsest-Provider"),
			Key:      first(header, "X-Palimpsest-Provider-Key", "X-Provider-Key"),
			BaseURL:  header.Get("X-Palimpsest-Base-Url"),
		},
	}
	if own, secret := ownCredential(header); own != nil && asked.choice.Key == "" {
		asked.choice.Own, asked.choice.Key = own, secret
		asked.overrides = append(asked.overrides, keyHeader)
	}
	for _, name := range [...]string{"X-Palimpsest-Session-Id", "X-Palimpsest-Lane", "X-Palimpsest-User"} {
		if len(header.Get(name)) > maxID {
			return controls{}, tenants.Invalid{Field: name, Message: fmt.Sprintf("is longer than %d bytes; send a shorter id", maxID)}
		}
	}
	if asked.choice.BaseURL != "" && asked.choice.Key == "" {
		return controls{}, tenants.Invalid{Field: "X-Palimpsest-Base-Url", Message: "needs X-Palimpsest-Provider-Key beside it"}
	}
	var err error
	if asked.bypass, err = flag(header, "X-Palimpsest-Bypass"); err != nil {
		return controls{}, err
	}
	if asked.dryRun, err = flag(header, "X-Palimpsest-Dry-Run"); err != nil {
		return controls{}, err
	}
	if asked.noStore, err = flag(header, "X-Palimpsest-No-Store"); err != nil {
		return controls{}, err
	}
	if asked.tags, err = tagsIn(header); err != nil {
		return controls{}, err
	}
	return asked, nil
}

// tagHeader is the prefix of headers with tags.
const tagHeader = "X-Palimpsest-Tag-"

// tagsIn returns the tags of a request, or nil without tags.
func tagsIn(header http.Header) (tenants.Tags, error) {
	var tags tenants.Tags
	for field, values := range header {
		if !strings.HasPrefix(field, tagHeader) {
			continue
		}
		name := strings.ToLower(field[len(tagHeader):]) // headers may have any case
		if len(values) != 1 {
			return nil, tenants.Invalid{Field: fmt.Sprintf("%.100s", field), Message: "is there more than once; send each tag in one header"}
		}
		if err := tenants.CheckTag(field, name, values[0]); err != nil {
			return nil, err
		}
		if tags == nil {
			tags = tenants.Tags{}
		}
		tags[name] = values[0]
	}
	if len(tags) > tenants.MaxTags {
		return nil, tenants.Invalid{Field: tagHeader + "*", Message: fmt.Sprintf("is there %d times; send at most %d tags", len(tags), tenants.MaxTags)}
	}
	return tags, nil
}

// overridesIn returns the request headers that override the configured pipeline or provider.
func overridesIn(header http.Header) []string {
	var found []string
	for _, name := range []string{
		"X-Palimpsest-Pipe", "X-Prxy-Pipe", "X-Palimpsest-Bypass", "X-Palimpsest-Dry-Run", "X-Palimpsest-Target-Utilization",
		"X-Palimpsest-Provider", "X-Palimpsest-Provider-Key", "X-Provider-Key", "X-Palimpsest-Base-Url",
	} {
		if header.Get(name) != "" {
			found = append(found, name)
		}
	}
	return found
}

// flag reads a boolean header; false without it.
func flag(header http.Header, name string) (bool, error) {
	value := header.Get(name)
	if value == "" {
		return false, nil
	}
	set, err := strconv.ParseBool(value)
	if err != nil {
		return false, tenants.Invalid{Field: name, Message: "must be true or false"}
	}
	return set, nil
}

// layer returns the pipeline settings that the headers ask for.
func (c controls) layer() (pipeline.Layer, error) {
	layer := pipeline.Layer{Source: pipeline.FromHeader, Modules: c.pipe}
	if c.target == "" {
		return layer, nil
	}
	if _, err := strconv.ParseFloat(c.target, 64); err != nil {
		return pipeline.Layer{}, tenants.Invalid{Field: "X-Palimpsest-Target-Utilization", Message: "must be a number between 0.30 and 0.95"}
	}
	layer.YAML = "ipc:\n  targetUtilization: " + strings.TrimSpace(c.target) + "\n"
	return layer, nil
}

// first returns the first of the named headers with a value.
func first(header http.Header, names ...string) string {
	for _, name := range names {
		if value := header.Get(name); value != "" {
			return value
		}
	}
	return ""
}
