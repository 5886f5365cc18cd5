package components

import (
	"strings"

	"palimpsest/tenants"
)

// Unkept says of which requests nothing is kept but figures, now: of all of a workspace,
// or of those with some of its keys. It returns an empty text where of all something is.
func Unkept(settings tenants.DataSettings, keys []tenants.APIKey) string {
	if settings.NoStore {
		return "This workspace keeps figures only: nothing that is said is archived or compressed, and its requests make no session."
	}
	var names []string
	for i := range keys {
		if keys[i].Limits.NoStore && keys[i].RevokedAt == nil {
			names = append(names, keys[i].Name)
		}
	}
	switch len(names) {
	case 0:
		return ""
	case 1:
		return "The key " + names[0] + " keeps figures only: nothing that is said with it is archived or compressed, and its requests make no session."
	default:
		last := len(names) - 1
		return "The keys " + strings.Join(names[:last], ", ") + " and " + names[last] + " keep figures only: nothing that is said with them is archived or compressed, and their requests make no session."
	}
}
