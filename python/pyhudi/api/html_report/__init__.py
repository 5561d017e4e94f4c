"""The report page of a table. Needs the extra `report`: Jinja, matplotlib and squarify."""
