package settings

import "fmt"

// Role is the part of the product that a process runs.
type Role string

// The roles. Every process answers on its address; it does not serve the paths of another role.
const (
	RoleAll    Role = "all"
	RoleWeb    Role = "web"    // dashboard and JSON API
	RoleAPI    Role = "api"    // the proxy and the JSON API
	RoleWorker Role = "worker" // only work off the request path
)

// RoleOf returns the role with a name.
func RoleOf(name string) (Role, error) {
	switch role := Role(name); role {
	case RoleAll, RoleWeb, RoleAPI, RoleWorker:
		return role, nil
	}
	return "", fmt.Errorf("--role: %q must be all, web, api or worker", name)
}

// Works reports whether the process runs jobs.
func (r Role) Works() bool { return r == RoleAll || r == RoleWorker }

// Proxies reports whether the process serves the proxy.
func (r Role) Proxies() bool { return r == RoleAll || r == RoleAPI }

// Shows reports whether it serves the dashboard.
func (r Role) Shows() bool { return r == RoleAll || r == RoleWeb }
