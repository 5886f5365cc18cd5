package components

import (
	"strings"

	"palimpsest/tenants"
)

// Unkept names the requests of which only figures are currently kept: all of a workspace's, or those with
// some of its keys. It returns "" if all requests are kept.
func Unkept(settings tenants.DataSettings, keys []tenants.APIKey) string {
	if settings.NoStore {
		return "This workspace keeps figures only: conversations are not archived or compressed, and requests create no session."
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
		return "The key " + names[0] + " keeps figures only: its conversations are not archived or compressed, and its requests create no session."
	default:
		last := len(names) - 1
		return "The keys " + strings.Join(names[:last], ", ") + " and " + names[last] + " keep figures only: their conversations are not archived or compressed, and their requests create no session."
	}
}
