// Package tenantsdb keeps workspaces, people, keys, pipeline configs and usage in
// Postgres. It is the one door to tenants' rows: DB.InTenant. An exported method
// is a transaction for one tenant, an unexported function one query.
package tenantsdb
