// Package atom answers the administration clients of Azure Service Bus: Atom entries over HTTPS, with a
// shared access signature as the authorization. Changes are made by the operations that the management
// API has, as the user that Service Bus's clients act as, and are recorded as such.
//
// An entity keeps what Curfew obeys, and UserMetadata, EnablePartitioning and EnableBatchedOperations, which have no effect. Its other
// properties have Azure's defaults: a client that gives another value is refused, and told which property it is.
//
// A rule's filter may be true, false, a correlation filter or SQL; rules have no actions.
package atom
