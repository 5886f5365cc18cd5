package components

import "palimpsest/web/render"

// EndUser returns what an end user is called: by the application's own id where it is known, or else by
// the beginning of its hash; "" for "".
func EndUser(name, hash string) string {
	switch {
	case name != "":
		return render.Visible(name)
	case hash == "":
		return ""
	}
	return "end user " + hash[:min(len(hash), 8)]
}
