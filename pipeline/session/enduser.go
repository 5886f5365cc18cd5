package session

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"

	"palimpsest/tenants"
)

// EndUserID returns the id by which a workspace's end user is stored and told from others: 32
// hexadecimal digits of a hash of the application's own id; "" for "". Two workspaces store the same
// person under different ids.
func EndUserID(workspace tenants.WorkspaceID, id string) string {
	if id == "" {
		return ""
	}
	sum := sha256.Sum256(fmt.Appendf(nil, "end user|%s|%s", workspace, id))
	return hex.EncodeToString(sum[:16])
}
