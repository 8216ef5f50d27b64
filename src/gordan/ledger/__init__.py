"""Questions about data, proposals of finders, and the evidence: what is proved so far. Only the evidence asks the checker."""
