// Package tenants is the domain model of customers: workspaces, members, keys, pipelines and usage. It holds
// rules and types; tenantsdb stores them, vault seals provider keys, identity logs people in.
package tenants
