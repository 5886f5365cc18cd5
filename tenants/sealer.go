package tenants

// Sealer seals secrets and binds them to a context, about. A secret opens only in the context that it was
// sealed for.
type Sealer interface {
	SealAbout(about, secret string) ([]byte, error)

	// OpenAbout reports whether the newest master key sealed the secret.
	OpenAbout(about string, sealed []byte) (secret string, newest bool, err error)
}
