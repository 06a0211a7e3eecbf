// Package atom answers the administration clients of Azure Service Bus: Atom entries over HTTPS, with a
// shared access signature as the authorization. Changes are made by the operations that the management
// API has, as the user that Service Bus's clients act as, and are recorded as such.
//
// Only what Curfew keeps is remembered: the other properties of an entity are answered with Azure's
// defaults. A rule's filter may be true, false, a correlation filter or SQL; rules have no actions.
package atom
