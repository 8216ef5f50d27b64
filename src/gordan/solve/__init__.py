"""Finding answers: everything here may propose, only `certificates` claims."""
