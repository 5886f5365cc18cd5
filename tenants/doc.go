// Package tenants holds what the product knows of its customers: workspaces, the
// people in them, their keys, their pipeline and their usage. It is rules and
// types; tenantsdb keeps them, vault seals provider keys, identity logs people in.
package tenants
