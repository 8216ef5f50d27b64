"""What is asked, what is proposed, and what has been proved so far. Finders propose; only the evidence asks the checker."""
