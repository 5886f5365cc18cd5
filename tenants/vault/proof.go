package vault

// aboutProof is what the proof of a database is bound to, and all that it holds.
const aboutProof = "master key of this database"

// Proof returns bytes by which OpensProof knows the master key again.
func (v *Vault) Proof() ([]byte, error) { return v.SealAbout(aboutProof, aboutProof) }

// OpensProof returns ErrSealedElsewhere if none of the master keys has made a proof.
func (v *Vault) OpensProof(proof []byte) error {
	_, _, err := v.OpenAbout(aboutProof, proof)
	return err
}

// ResealProof does for a proof what ResealAbout does for a secret.
func (v *Vault) ResealProof(proof []byte) (sealed []byte, was bool, err error) {
	return v.ResealAbout(aboutProof, proof)
}
