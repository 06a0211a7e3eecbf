// Package atom answers the administration clients of Azure Service Bus: Atom entries over HTTPS, with a
// shared access signature as the authorization. Changes are made by the operations that the management
// API has, as the user that Service Bus's clients act as, and are recorded as such.
//
// Only what Curfew keeps is remembered: the other properties of an entity are answered with Azure's
// defaults. Of rules there are those whose filter is true, false or a correlation filter.
package atom
