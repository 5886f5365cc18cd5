package tenantsdb

// ProxySettings is what the proxy reads and learns of a workspace. ProviderKeys and ModelWindows
// have methods of the same name, so they are embedded under others.
type ProxySettings struct {
	Data
	Pipelines
	providerKeys
	modelWindows
}

type (
	providerKeys = ProviderKeys
	modelWindows = ModelWindows
)
