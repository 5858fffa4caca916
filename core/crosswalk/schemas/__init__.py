"""JSON Schemas: of any type of a program, checked against decoded JSON, written as TypeScript, in the form of servers."""
